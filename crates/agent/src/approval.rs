//! Approval: asking a person before a call does something.
//!
//! Whoever judges calls makes a [`Question`]; an [`Approver`] brings it to somebody who can answer,
//! on a terminal or in another program, or says that there is nobody. Waiting for an answer may take
//! as long as the person likes and holds up no other call.

use std::sync::Arc;

use futures::future::{self, BoxFuture};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::effect::Effect;

/// What a person is asked about one call.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Question {
    /// The call.
    pub tool_call_id: Arc<str>,
    /// The tool.
    pub tool_name: Arc<str>,
    /// The arguments that the tool will get.
    pub args: Map<String, Value>,
    /// Everything that the call will do, as far as the tool says.
    pub effects: Vec<Effect>,
    /// Why it is asked about, a sentence each.
    pub reasons: Vec<String>,
}

impl Question {
    /// A question about one call.
    pub fn new(
        tool_call_id: Arc<str>,
        tool_name: Arc<str>,
        args: Map<String, Value>,
        effects: Vec<Effect>,
        reasons: Vec<String>,
    ) -> Self {
        Self { tool_call_id, tool_name, args, effects, reasons }
    }
}

/// What the person says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Approval {
    /// This time.
    Once,
    /// Whenever a call with the same tool and the same effects comes in this session.
    Session,
    /// No.
    Deny {
        /// A word to the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
}

/// Brings questions to a person. Dropping the future takes the question back.
pub trait Approver: Send + Sync {
    /// The answer, or `None` when nobody can be asked.
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Option<Approval>>;
}

/// Nobody can be asked: a headless run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Approver for Nobody {
    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Option<Approval>> {
        Box::pin(future::ready(None))
    }
}
