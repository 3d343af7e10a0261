//! [`Calls`]: which tool call a delta belongs to.
//!
//! Calls are told apart by position. Hosts leave the position out, give every call the same one,
//! repeat ids or leave them out, so a delta also opens a new call when it cannot continue the one it
//! points at: that one has another id and this delta names a tool, or its arguments are already a
//! whole JSON object. Names may come in pieces as well, before the arguments.

use std::collections::HashMap;

use super::wire::CallDelta;
use crate::providers::blocks::{Blocks, Handle};

/// The calls of one message.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
    /// The newest call of each position, as an index into `calls`.
    by_index: HashMap<u64, usize>,
    /// The newest call of each wire id.
    by_id: HashMap<String, usize>,
}

#[derive(Debug)]
struct Call {
    handle: Handle,
    id: String,
    name: String,
}

/// The place of the one call of the form before `tool_calls`, which has none.
pub(super) const LEGACY_INDEX: u64 = u64::MAX;

impl Calls {
    /// Takes in one delta.
    pub(super) fn push(&mut self, delta: &CallDelta<'_>, blocks: &mut Blocks) {
        let (name, arguments) = match (&delta.function.0, &delta.custom.0) {
            (Some(function), _) => (function.name.as_str(), function.arguments.0.as_ref()),
            (None, Some(custom)) => (custom.name.as_str(), custom.input.as_str()),
            (None, None) => ("", ""),
        };
        let id = delta.id.as_str();
        let signature = delta
            .extra_content
            .0
            .as_ref()
            .and_then(|extra| extra.google.0.as_ref())
            .map_or("", |google| google.thought_signature.as_str());
        let pointed_at = match delta.index.0 {
            Some(index) => self.by_index.get(&index).copied(),
            None => {
                let last = self.calls.len().checked_sub(1);
                // An id that nobody has and no name: some hosts fill the field with anything.
                let known = self.by_id.get(id).copied();
                known.or(last.filter(|_| id.is_empty() || name.is_empty()))
            }
        };
        let continued = pointed_at.filter(|at| {
            self.calls
                .get(*at)
                .is_some_and(|call| call.is_continued_by(delta, name, arguments, blocks))
        });
        let at = match continued {
            Some(at) => at,
            None if id.is_empty() && name.is_empty() && arguments.is_empty() => return,
            None => {
                let handle = blocks.begin_call(id, name);
                self.calls.push(Call { handle, id: String::new(), name: String::new() });
                self.calls.len() - 1
            }
        };
        if let Some(index) = delta.index.0 {
            self.by_index.insert(index, at);
        }
        let Some(call) = self.calls.get_mut(at) else { return };
        if call.id.is_empty() && !id.is_empty() {
            id.clone_into(&mut call.id);
            self.by_id.insert(id.to_owned(), at);
        }
        if call.name.is_empty() {
            name.clone_into(&mut call.name);
        }
        blocks.identify_call(call.handle, id, name);
        if delta.custom.0.is_some() {
            blocks.take_as_text(call.handle);
        }
        if !name.is_empty() && name != call.name && !blocks.has_arguments(call.handle) {
            // A name in pieces, or one that is longer each time.
            call.name = match name.starts_with(&call.name) {
                true => name.to_owned(),
                false => format!("{}{name}", call.name),
            };
            blocks.rename_call(call.handle, &call.name);
        }
        blocks.grow_call(call.handle, arguments);
        blocks.sign_call(call.handle, signature);
    }
}

impl Call {
    /// Whether a delta that points here goes on with this call; otherwise it opens the next one.
    fn is_continued_by(
        &self,
        delta: &CallDelta<'_>,
        name: &str,
        arguments: &str,
        blocks: &Blocks,
    ) -> bool {
        let id = delta.id.as_str();
        if delta.index.0.is_some() && !id.is_empty() && id == self.id {
            return true;
        }
        let other_id = !id.is_empty() && !self.id.is_empty() && id != self.id;
        let other_name = !name.is_empty() && !self.name.is_empty() && name != self.name;
        let cannot_grow =
            blocks.is_call_complete(self.handle) && !arguments.trim_ascii().is_empty();
        if other_name {
            // The rest of a name says neither an id nor arguments.
            delta.index.0.is_some()
                && id.is_empty()
                && !self.id.is_empty()
                && arguments.is_empty()
                && !blocks.has_arguments(self.handle)
        } else if other_id {
            // A host that changes ids from chunk to chunk does not say the name again.
            name.is_empty() && !cannot_grow
        } else {
            name.is_empty() || !cannot_grow
        }
    }
}
