//! Ids of output items.
//!
//! **Invariant:** an id says whether its item came right behind reasoning that the client can bring
//! back, so that a request that brings the item back without its reasoning is refused, as the real API
//! does, without the server remembering what it said.

/// Ends the ids of items that came right behind such reasoning.
const BEHIND_REASONING: &str = "_r";

/// The id of an item: `prefix` says its type, `request` and `index` its place.
pub(crate) fn item_id(
    prefix: &str,
    request: usize,
    index: usize,
    behind_reasoning: bool,
) -> String {
    let mark = if behind_reasoning { BEHIND_REASONING } else { "" };
    format!("{prefix}_{request:08}_{index}{mark}")
}

/// Whether an id is one of ours for an item right behind reasoning.
pub(crate) fn is_behind_reasoning(id: &str) -> bool {
    let Some(rest) = id.strip_suffix(BEHIND_REASONING) else {
        return false;
    };
    let mut parts = rest.splitn(3, '_').skip(1);
    let is_number = |part: Option<&str>| {
        part.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
    };
    is_number(parts.next()) && is_number(parts.next())
}
