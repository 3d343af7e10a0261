//! The words that hosts say when an answer ends, and what they mean.
//!
//! One table for every API: gateways that speak one API pass on the words of another. A word that
//! is not here is an error, never a silent stop.

use crate::error::{ErrorKind, ProviderError};
use crate::message::StopReason;

const STOPS: &[(&str, StopReason)] = &[
    ("stop", StopReason::Stop),
    ("end_turn", StopReason::Stop),
    ("stop_sequence", StopReason::Stop),
    ("eos", StopReason::Stop),
    ("eos_token", StopReason::Stop),
    ("end", StopReason::Stop),
    ("stop_token", StopReason::Stop),
    ("complete", StopReason::Stop),
    ("completed", StopReason::Stop),
    // The host paused a long turn of its own tools, or compacted the context; the answer so far is whole.
    ("pause_turn", StopReason::Stop),
    ("compaction", StopReason::Stop),
    ("length", StopReason::Length),
    ("max_tokens", StopReason::Length),
    ("max_output_tokens", StopReason::Length),
    ("max_length", StopReason::Length),
    ("token_limit", StopReason::Length),
    ("tool_calls", StopReason::ToolUse),
    ("tool_use", StopReason::ToolUse),
    ("tool_call", StopReason::ToolUse),
    ("function_call", StopReason::ToolUse),
    ("function_calls", StopReason::ToolUse),
    ("content_filter", StopReason::Refusal),
    ("content_filtered", StopReason::Refusal),
    ("guardrail_intervened", StopReason::Refusal),
    ("refusal", StopReason::Refusal),
    ("safety", StopReason::Refusal),
    ("sensitive", StopReason::Refusal),
    ("recitation", StopReason::Refusal),
    ("blocklist", StopReason::Refusal),
    ("prohibited_content", StopReason::Refusal),
    ("spii", StopReason::Refusal),
    ("model_armor", StopReason::Refusal),
    ("image_safety", StopReason::Refusal),
    ("image_prohibited_content", StopReason::Refusal),
    ("image_recitation", StopReason::Refusal),
    ("model_context_window_exceeded", StopReason::ContextOverflow),
    ("context_window_exceeded", StopReason::ContextOverflow),
    ("context_length_exceeded", StopReason::ContextOverflow),
    ("model_length", StopReason::ContextOverflow),
];

const FAILURES: &[(&str, ErrorKind)] = &[
    ("error", ErrorKind::Server),
    ("network_error", ErrorKind::Server),
    ("abort", ErrorKind::Server),
    ("aborted", ErrorKind::Server),
    ("cancelled", ErrorKind::Server),
    ("other", ErrorKind::Server),
    ("finish_reason_unspecified", ErrorKind::Server),
    ("no_image", ErrorKind::Server),
    ("image_other", ErrorKind::Server),
    ("language", ErrorKind::InvalidRequest),
    ("repetition", ErrorKind::Server),
    ("overloaded", ErrorKind::Overloaded),
    ("insufficient_system_resource", ErrorKind::Overloaded),
    ("malformed_function_call", ErrorKind::MalformedStream),
    ("malformed_tool_call", ErrorKind::MalformedStream),
    ("unexpected_tool_call", ErrorKind::MalformedStream),
    ("malformed_response", ErrorKind::MalformedStream),
    ("too_many_tool_calls", ErrorKind::MalformedStream),
    ("missing_thought_signature", ErrorKind::InvalidRequest),
];

/// What a host's word for the end means: a reason, or a failure that it names or that we do not know.
pub(crate) fn stop_reason(word: &str) -> Result<StopReason, ProviderError> {
    if let Some((_, reason)) = STOPS.iter().find(|(known, _)| known.eq_ignore_ascii_case(word)) {
        return Ok(*reason);
    }
    let failure = FAILURES.iter().find(|(known, _)| known.eq_ignore_ascii_case(word));
    Err(match failure {
        Some((known, kind)) => {
            ProviderError::new(*kind, format!("the provider ended the answer with `{known}`"))
        }
        None => ProviderError::new(
            ErrorKind::MalformedStream,
            format!("unknown stop reason `{}`", word.chars().take(MAX_QUOTED).collect::<String>()),
        ),
    })
}

/// How much of an unknown word is quoted; a longer one is no word.
const MAX_QUOTED: usize = 80;
