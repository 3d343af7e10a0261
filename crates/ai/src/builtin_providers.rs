//! [`BUILTIN_PROVIDERS`]: the providers that are known by name.
//!
//! A table and nothing else: where each one is, which variables its users set, and its dialect.
//! Reading those variables is the caller's business.

use crate::api::Api;
use crate::compat::{Compat, ImageTypes, MaxTokensField, ReasoningReplay, SystemRole, ToolIdForm};
use crate::provider_entry::{KeyNeed, ProviderEntry};

/// A provider that needs no configuration but its key.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct BuiltinProvider {
    /// The name, such as `anthropic`.
    pub name: &'static str,
    /// The wire format.
    pub api: Api,
    /// Where it is.
    pub base_url: &'static str,
    /// The variables that may hold its key; the first that is set wins.
    pub key_variables: &'static [&'static str],
    /// The variable that may move it elsewhere.
    pub base_url_variable: &'static str,
    /// Whether it answers without a key.
    pub key_need: KeyNeed,
    /// What is not plain in its dialect.
    dialect: fn(&mut Compat),
}

/// Every built-in provider, in the order in which they are shown.
pub const BUILTIN_PROVIDERS: &[BuiltinProvider] = &[
    BuiltinProvider {
        name: "anthropic",
        api: Api::AnthropicMessages,
        base_url: "https://api.anthropic.com",
        key_variables: &["ANTHROPIC_API_KEY"],
        base_url_variable: "ANTHROPIC_BASE_URL",
        key_need: KeyNeed::Required,
        dialect: |_| {},
    },
    BuiltinProvider {
        name: "openai",
        api: Api::OpenaiChat,
        base_url: "https://api.openai.com/v1",
        key_variables: &["OPENAI_API_KEY"],
        base_url_variable: "OPENAI_BASE_URL",
        key_need: KeyNeed::Required,
        dialect: |compat| {
            compat.max_tokens_field = MaxTokensField::MaxCompletionTokens;
            compat.system_role = SystemRole::Developer;
        },
    },
    BuiltinProvider {
        name: "gemini",
        api: Api::GoogleGenerate,
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        key_variables: &["GEMINI_API_KEY"],
        base_url_variable: "GEMINI_BASE_URL",
        key_need: KeyNeed::Required,
        dialect: |_| {},
    },
    BuiltinProvider {
        name: "deepseek",
        api: Api::OpenaiChat,
        base_url: "https://api.deepseek.com/v1",
        key_variables: &["DEEPSEEK_API_KEY"],
        base_url_variable: "DEEPSEEK_BASE_URL",
        key_need: KeyNeed::Required,
        dialect: |compat| {
            // Asked for with every answer of a turn that made calls, and ignored with others.
            compat.reasoning_replay = ReasoningReplay::Always;
            compat.text_only = true;
        },
    },
    BuiltinProvider {
        name: "openrouter",
        api: Api::OpenaiChat,
        base_url: "https://openrouter.ai/api/v1",
        key_variables: &["OPENROUTER_API_KEY"],
        base_url_variable: "OPENROUTER_BASE_URL",
        key_need: KeyNeed::Required,
        dialect: |_| {},
    },
    BuiltinProvider {
        name: "groq",
        api: Api::OpenaiChat,
        base_url: "https://api.groq.com/openai/v1",
        key_variables: &["GROQ_API_KEY"],
        base_url_variable: "GROQ_BASE_URL",
        key_need: KeyNeed::Required,
        dialect: |compat| {
            compat.max_tokens_field = MaxTokensField::MaxCompletionTokens;
        },
    },
    BuiltinProvider {
        name: "xai",
        api: Api::OpenaiChat,
        base_url: "https://api.x.ai/v1",
        key_variables: &["XAI_API_KEY"],
        base_url_variable: "XAI_BASE_URL",
        key_need: KeyNeed::Required,
        dialect: |compat| {
            compat.reasoning_beside_output = true;
            compat.image_types = ImageTypes::PngAndJpeg;
        },
    },
    BuiltinProvider {
        name: "mistral",
        api: Api::OpenaiChat,
        base_url: "https://api.mistral.ai/v1",
        key_variables: &["MISTRAL_API_KEY"],
        base_url_variable: "MISTRAL_BASE_URL",
        key_need: KeyNeed::Required,
        dialect: |compat| {
            compat.tool_ids = ToolIdForm::NineAlphanumerics;
            compat.no_stream_options = true;
            compat.no_user_after_result = true;
        },
    },
    BuiltinProvider {
        name: "together",
        api: Api::OpenaiChat,
        base_url: "https://api.together.xyz/v1",
        key_variables: &["TOGETHER_API_KEY"],
        base_url_variable: "TOGETHER_BASE_URL",
        key_need: KeyNeed::Required,
        dialect: |_| {},
    },
    BuiltinProvider {
        name: "fireworks",
        api: Api::OpenaiChat,
        base_url: "https://api.fireworks.ai/inference/v1",
        key_variables: &["FIREWORKS_API_KEY"],
        base_url_variable: "FIREWORKS_BASE_URL",
        key_need: KeyNeed::Required,
        dialect: |_| {},
    },
    BuiltinProvider {
        name: "cerebras",
        api: Api::OpenaiChat,
        base_url: "https://api.cerebras.ai/v1",
        key_variables: &["CEREBRAS_API_KEY"],
        base_url_variable: "CEREBRAS_BASE_URL",
        key_need: KeyNeed::Required,
        dialect: |compat| {
            compat.max_tokens_field = MaxTokensField::MaxCompletionTokens;
            compat.text_only = true;
        },
    },
    BuiltinProvider {
        name: "moonshot",
        api: Api::OpenaiChat,
        base_url: "https://api.moonshot.ai/v1",
        key_variables: &["MOONSHOT_API_KEY"],
        base_url_variable: "MOONSHOT_BASE_URL",
        key_need: KeyNeed::Required,
        dialect: |compat| compat.reasoning_replay = ReasoningReplay::WithToolCalls,
    },
    BuiltinProvider {
        name: "zhipu",
        api: Api::OpenaiChat,
        base_url: "https://open.bigmodel.cn/api/paas/v4",
        key_variables: &["ZHIPU_API_KEY", "ZHIPUAI_API_KEY", "ZAI_API_KEY"],
        base_url_variable: "ZHIPU_BASE_URL",
        key_need: KeyNeed::Required,
        dialect: |compat| compat.reasoning_replay = ReasoningReplay::WithToolCalls,
    },
    BuiltinProvider {
        name: "qwen",
        api: Api::OpenaiChat,
        base_url: "https://dashscope.aliyuncs.com/compatible-mode/v1",
        key_variables: &["DASHSCOPE_API_KEY", "QWEN_API_KEY"],
        base_url_variable: "QWEN_BASE_URL",
        key_need: KeyNeed::Required,
        dialect: |_| {},
    },
    BuiltinProvider {
        name: "huggingface",
        api: Api::OpenaiChat,
        base_url: "https://router.huggingface.co/v1",
        key_variables: &["HF_TOKEN", "HUGGINGFACE_API_KEY"],
        base_url_variable: "HUGGINGFACE_BASE_URL",
        key_need: KeyNeed::Required,
        dialect: |_| {},
    },
    BuiltinProvider {
        name: "perplexity",
        api: Api::OpenaiChat,
        base_url: "https://api.perplexity.ai",
        key_variables: &["PERPLEXITY_API_KEY"],
        base_url_variable: "PERPLEXITY_BASE_URL",
        key_need: KeyNeed::Required,
        dialect: |compat| {
            compat.no_stream_options = true;
            compat.no_user_after_result = true;
        },
    },
    local("ollama", "http://127.0.0.1:11434/v1", &["OLLAMA_API_KEY"], "OLLAMA_BASE_URL"),
    local("lmstudio", "http://127.0.0.1:1234/v1", &["LMSTUDIO_API_KEY"], "LMSTUDIO_BASE_URL"),
    local("vllm", "http://127.0.0.1:8000/v1", &["VLLM_API_KEY"], "VLLM_BASE_URL"),
    local("llamacpp", "http://127.0.0.1:8080/v1", &["LLAMACPP_API_KEY"], "LLAMACPP_BASE_URL"),
];

/// A server on the own machine: no key needed, and chat templates of any model, of which some
/// want an answer between a tool's result and what the user says.
const fn local(
    name: &'static str,
    base_url: &'static str,
    key_variables: &'static [&'static str],
    base_url_variable: &'static str,
) -> BuiltinProvider {
    BuiltinProvider {
        name,
        api: Api::OpenaiChat,
        base_url,
        key_variables,
        base_url_variable,
        key_need: KeyNeed::Optional,
        dialect: |compat| compat.no_user_after_result = true,
    }
}

impl BuiltinProvider {
    /// The built-in provider of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        BUILTIN_PROVIDERS.iter().find(|provider| provider.name == name)
    }

    /// The provider's entry, without a key.
    pub fn entry(&self) -> ProviderEntry {
        let mut entry = ProviderEntry::new(self.name, self.api, self.base_url);
        entry.key_need = self.key_need;
        entry.key_hint = self.key_variables.first().map(|variable| (*variable).to_owned());
        (self.dialect)(&mut entry.compat);
        entry
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_and_variables_are_unique_and_addresses_are_whole() {
        let mut seen = HashSet::new();
        for provider in BUILTIN_PROVIDERS {
            assert!(seen.insert(provider.name), "{}", provider.name);
            assert!(seen.insert(provider.base_url_variable), "{}", provider.name);
            for variable in provider.key_variables {
                assert!(seen.insert(variable), "{variable}");
            }
            let entry = provider.entry();
            let local = entry.base_url.starts_with("http://127.0.0.1:");
            assert!(local || entry.base_url.starts_with("https://"), "{}", provider.name);
            assert_eq!(local, entry.key_need == KeyNeed::Optional, "{}", provider.name);
            assert!(entry.key_hint.is_some(), "{}", provider.name);
        }
        assert_eq!(seen.len(), 3 * BUILTIN_PROVIDERS.len() + 4, "extra names of keys: 4");
    }
}
