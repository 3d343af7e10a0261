//! Ids of calls that came with a thought signature.
//!
//! **Invariant:** an id made here says which signature its call came with, so that a request that
//! brings the call back without it, or with another, is refused, as the real API does, without the
//! server remembering what it said.

use crate::signature::fingerprint;

/// Begins the ids that are made here.
pub(crate) const PREFIX: &str = "call_";

/// How many characters say which signature it was.
const MARK_CHARS: usize = 16;

/// The id of a call, with the mark of its signature.
pub(crate) fn marked(id: &str, signature: &str) -> String {
    format!("{id}_{}", fingerprint(signature))
}

/// Whether an id is one of ours for a call that came with a signature.
pub(crate) fn is_marked(id: &str) -> bool {
    mark(id).is_some()
}

/// Whether an id's mark, if it has one, fits the signature.
pub(crate) fn fits(id: &str, signature: &str) -> bool {
    mark(id).is_none_or(|mark| mark == fingerprint(signature))
}

fn mark(id: &str) -> Option<&str> {
    let (number, mark) = id.strip_prefix(PREFIX)?.split_once('_')?;
    let is_ours = number.bytes().all(|byte| byte.is_ascii_digit())
        && mark.len() == MARK_CHARS
        && mark.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_ours.then_some(mark)
}
