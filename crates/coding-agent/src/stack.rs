//! The onion: every layer around every tool, composed here and nowhere else.

use std::sync::Arc;

use agent::{OfferedTool, ValidateLayer};
use tower::ServiceBuilder;

use crate::extension_layer::ExtensionLayer;
use crate::limit::LimitLayer;
use crate::permission::{Permission, PermissionLayer};

/// What the layers of a session's tools are made of.
#[derive(Clone)]
pub struct Stack {
    /// Other people's code around each call.
    pub extensions: ExtensionLayer,
    /// What calls are judged by.
    pub permission: Permission,
    /// How much a tool may return.
    pub limit: LimitLayer,
}

impl Stack {
    /// Puts the layers around a tool, outer to inner. The two outermost, `outcome` and the first
    /// `validate`, are the same for every host and are added by [`OfferedTool::call`].
    pub fn around(&self, tool: OfferedTool) -> OfferedTool {
        let layers = ServiceBuilder::new()
            // extension: may rewrite or block; always hears the end.
            .layer(self.extensions.clone())
            // validate: the final arguments, since an extension may be wrong.
            .layer(ValidateLayer::extensions(Arc::clone(tool.validator())))
            // permission: the effects of the final arguments; hands on a grant for them.
            .layer(PermissionLayer::new(self.permission.clone(), tool.clone()))
            // journal: the place of the durable intent and outcome, when there is a log.
            // sandbox: the place where the grant becomes capabilities, when there is one.
            // limit: whatever the tool returns, the model reads no more than this.
            .layer(self.limit)
            .into_inner();
        tool.layer(&layers)
    }
}
