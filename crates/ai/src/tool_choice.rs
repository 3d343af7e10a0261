//! [`ToolChoice`]: what a request says about calling tools.

use crate::provider_entry::ProviderEntry;
use crate::request::Request;

/// Whether the model may, must or must not call a tool. Without tools on offer it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No call.
    None,
    /// At least one call.
    Required,
    /// A call of the tool that has this name.
    Tool(String),
}

/// What has to be said of the choice to this host; nothing where it is the model's anyway, where
/// there is nothing to choose from, and where the host does not take it.
pub(crate) fn choice_to_send<'a>(
    request: &'a Request,
    entry: &ProviderEntry,
) -> Option<&'a ToolChoice> {
    let choice = Some(&request.tool_choice).filter(|choice| **choice != ToolChoice::Auto);
    choice.filter(|_| !request.tools.is_empty() && !entry.compat.auto_tool_choice_only)
}
