//! Token counts of the Chat Completions dialects, made disjoint.

use serde::Deserialize;

use crate::compat::Compat;
use crate::message::Usage as Tokens;
use crate::providers::lenient::{Count, Maybe};

/// The counts as hosts write them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Usage {
    prompt_tokens: Count,
    completion_tokens: Count,
    /// Some gateways pass on the counts of the API behind them under its names.
    input_tokens: Count,
    output_tokens: Count,
    total_tokens: Count,
    prompt_tokens_details: Maybe<PromptDetails>,
    completion_tokens_details: Maybe<CompletionDetails>,
    reasoning_tokens: Count,
    prompt_cache_hit_tokens: Count,
    cached_tokens: Count,
    num_cached_tokens: Count,
    cache_read_input_tokens: Count,
    cache_creation_input_tokens: Count,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PromptDetails {
    cached_tokens: Count,
    cache_write_tokens: Count,
    cache_creation_tokens: Count,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CompletionDetails {
    reasoning_tokens: Count,
}

impl Usage {
    /// The disjoint counts; nothing when the host sent the object without any.
    pub(super) fn tokens(&self, compat: &Compat) -> Option<Tokens> {
        let (prompt, completion) = (
            self.prompt_tokens.or(self.input_tokens),
            self.completion_tokens.or(self.output_tokens),
        );
        let counts = [prompt, completion, self.total_tokens];
        if counts.iter().all(|count| count.0.is_none()) {
            return None;
        }
        let prompt_details = self.prompt_tokens_details.0.as_ref();
        let cache_read = prompt_details
            .map_or(Count(None), |details| details.cached_tokens)
            .or(self.prompt_cache_hit_tokens)
            .or(self.cached_tokens)
            .or(self.num_cached_tokens)
            .or(self.cache_read_input_tokens)
            .or_zero();
        let cache_write = prompt_details
            .map_or(Count(None), |details| {
                details.cache_write_tokens.or(details.cache_creation_tokens)
            })
            .or(self.cache_creation_input_tokens)
            .or_zero();
        let reasoning = self
            .completion_tokens_details
            .0
            .as_ref()
            .map_or(Count(None), |details| details.reasoning_tokens)
            .or(self.reasoning_tokens)
            .or_zero();
        let prompt = prompt.or_zero();
        // Under Anthropic's names the input has none of the cached tokens in it.
        let is_disjoint = self.prompt_tokens.0.is_none()
            && (self.cache_read_input_tokens.0.is_some()
                || self.cache_creation_input_tokens.0.is_some());
        let cached = if is_disjoint { 0 } else { cache_read.saturating_add(cache_write) };
        let completion = match (completion.0, self.total_tokens.0) {
            (Some(completion), _) => completion,
            (None, Some(total)) => total.saturating_sub(prompt),
            (None, None) => 0,
        };
        let output = if self.is_reasoning_beside(prompt, completion, reasoning, compat) {
            completion.saturating_add(reasoning)
        } else {
            completion
        };
        Some(Tokens {
            // Some hosts report more cached tokens than prompt tokens; the rest is then nothing.
            input: prompt.saturating_sub(cached),
            output,
            cache_read,
            cache_write,
            reasoning,
        })
    }

    /// Whether reasoning tokens are missing from the output count. The total proves it either way;
    /// only where it proves nothing the host's entry decides.
    fn is_reasoning_beside(
        &self,
        prompt: u64,
        completion: u64,
        reasoning: u64,
        compat: &Compat,
    ) -> bool {
        let among = prompt.saturating_add(completion);
        match self.total_tokens.0 {
            _ if reasoning == 0 => false,
            Some(total) if total == among => false,
            Some(total) if total == among.saturating_add(reasoning) => true,
            Some(_) | None => compat.reasoning_beside_output,
        }
    }
}
