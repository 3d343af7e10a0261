//! [`BUILTIN_PROVIDERS`]: the providers that are known by name.
//!
//! A table and nothing else: where each one is, which variables its users set, and its dialect.
//! Reading those variables is the caller's business.

use crate::api::Api;
use crate::catalogue::{self, ModelInfo};
use crate::compat::{
    Compat, ImageTypes, MaxTokensField, ReasoningReplay, SchemaForm, SystemRole, ThinkingField,
    ToolIdForm,
};
use crate::provider_entry::{AuthScheme, KeyNeed, ProviderEntry};

/// A provider that needs no configuration but its key, and its address where each customer has one
/// of their own.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct BuiltinProvider {
    /// The name, such as `anthropic`.
    pub name: &'static str,
    /// The provider whose key it is asked with, where that is another: one account, two wire formats.
    pub account: Option<&'static str>,
    /// The wire format.
    pub api: Api,
    /// Where it is; `None` where only its customer knows.
    pub base_url: Option<&'static str>,
    /// The variables that may hold its key; the first that is set wins.
    pub key_variables: &'static [&'static str],
    /// The variable that may move it elsewhere.
    pub base_url_variable: &'static str,
    /// Variables in which its own tools keep the host; weaker than the one above.
    pub host_variables: &'static [HostVariable],
    /// Whether it answers without a key.
    pub key_need: KeyNeed,
    /// How the key travels, where that is not its wire format's usual way.
    pub auth: Option<AuthScheme>,
    /// What is not plain in its dialect.
    dialect: fn(&mut Compat),
}

/// A variable that holds a host, with or without `https://`, and where on it the API is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostVariable {
    /// The variable.
    pub name: &'static str,
    /// The path below the host.
    pub path: &'static str,
}

/// What most of them have in common: Chat Completions, for a key.
const HOSTED: BuiltinProvider = BuiltinProvider {
    name: "",
    account: None,
    api: Api::OpenaiChat,
    base_url: None,
    key_variables: &[],
    base_url_variable: "",
    host_variables: &[],
    key_need: KeyNeed::Required,
    auth: None,
    dialect: |_| {},
};

/// Every built-in provider, in the order in which they are shown.
pub const BUILTIN_PROVIDERS: &[BuiltinProvider] = &[
    BuiltinProvider {
        name: "anthropic",
        api: Api::AnthropicMessages,
        base_url: Some("https://api.anthropic.com"),
        key_variables: &["ANTHROPIC_API_KEY"],
        base_url_variable: "ANTHROPIC_BASE_URL",
        ..HOSTED
    },
    BuiltinProvider {
        name: "openai",
        base_url: Some("https://api.openai.com/v1"),
        key_variables: &["OPENAI_API_KEY"],
        base_url_variable: "OPENAI_BASE_URL",
        dialect: |compat| {
            compat.max_tokens_field = MaxTokensField::MaxCompletionTokens;
            compat.system_role = SystemRole::Developer;
            compat.strict_tools = true;
        },
        ..HOSTED
    },
    BuiltinProvider {
        name: "openai-responses",
        account: Some("openai"),
        api: Api::OpenaiResponses,
        base_url: Some("https://api.openai.com/v1"),
        key_variables: &["OPENAI_API_KEY"],
        base_url_variable: "OPENAI_BASE_URL",
        ..HOSTED
    },
    BuiltinProvider {
        name: "gemini",
        api: Api::GoogleGenerate,
        base_url: Some("https://generativelanguage.googleapis.com/v1beta"),
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        base_url_variable: "GEMINI_BASE_URL",
        ..HOSTED
    },
    BuiltinProvider {
        name: "deepseek",
        base_url: Some("https://api.deepseek.com/v1"),
        key_variables: &["DEEPSEEK_API_KEY"],
        base_url_variable: "DEEPSEEK_BASE_URL",
        dialect: |compat| {
            // Asked for with every answer of a turn that made calls, and ignored with others.
            compat.reasoning_replay = ReasoningReplay::Always;
            compat.thinking_field = ThinkingField::ThinkingType;
            compat.text_only = true;
        },
        ..HOSTED
    },
    BuiltinProvider {
        name: "openrouter",
        base_url: Some("https://openrouter.ai/api/v1"),
        key_variables: &["OPENROUTER_API_KEY"],
        base_url_variable: "OPENROUTER_BASE_URL",
        dialect: |compat| compat.thinking_field = ThinkingField::ReasoningObject,
        ..HOSTED
    },
    BuiltinProvider {
        name: "groq",
        base_url: Some("https://api.groq.com/openai/v1"),
        key_variables: &["GROQ_API_KEY"],
        base_url_variable: "GROQ_BASE_URL",
        dialect: |compat| {
            compat.max_tokens_field = MaxTokensField::MaxCompletionTokens;
        },
        ..HOSTED
    },
    BuiltinProvider {
        name: "xai",
        base_url: Some("https://api.x.ai/v1"),
        key_variables: &["XAI_API_KEY"],
        base_url_variable: "XAI_BASE_URL",
        dialect: |compat| {
            compat.reasoning_beside_output = true;
            compat.image_types = ImageTypes::PngAndJpeg;
        },
        ..HOSTED
    },
    BuiltinProvider {
        name: "mistral",
        base_url: Some("https://api.mistral.ai/v1"),
        key_variables: &["MISTRAL_API_KEY"],
        base_url_variable: "MISTRAL_BASE_URL",
        dialect: |compat| {
            compat.tool_ids = ToolIdForm::NineAlphanumerics;
            compat.no_stream_options = true;
            compat.no_user_after_result = true;
        },
        ..HOSTED
    },
    BuiltinProvider {
        name: "together",
        base_url: Some("https://api.together.xyz/v1"),
        key_variables: &["TOGETHER_API_KEY"],
        base_url_variable: "TOGETHER_BASE_URL",
        ..HOSTED
    },
    BuiltinProvider {
        name: "fireworks",
        base_url: Some("https://api.fireworks.ai/inference/v1"),
        key_variables: &["FIREWORKS_API_KEY"],
        base_url_variable: "FIREWORKS_BASE_URL",
        ..HOSTED
    },
    BuiltinProvider {
        name: "cerebras",
        base_url: Some("https://api.cerebras.ai/v1"),
        key_variables: &["CEREBRAS_API_KEY"],
        base_url_variable: "CEREBRAS_BASE_URL",
        dialect: |compat| {
            compat.max_tokens_field = MaxTokensField::MaxCompletionTokens;
            compat.text_only = true;
        },
        ..HOSTED
    },
    BuiltinProvider {
        name: "moonshot",
        base_url: Some("https://api.moonshot.ai/v1"),
        key_variables: &["MOONSHOT_API_KEY"],
        base_url_variable: "MOONSHOT_BASE_URL",
        dialect: |compat| {
            compat.reasoning_replay = ReasoningReplay::WithToolCalls;
            compat.thinking_field = ThinkingField::ThinkingType;
        },
        ..HOSTED
    },
    BuiltinProvider {
        name: "zhipu",
        base_url: Some("https://open.bigmodel.cn/api/paas/v4"),
        key_variables: &["ZHIPU_API_KEY", "ZHIPUAI_API_KEY", "ZAI_API_KEY"],
        base_url_variable: "ZHIPU_BASE_URL",
        dialect: |compat| {
            compat.reasoning_replay = ReasoningReplay::WithToolCalls;
            compat.thinking_field = ThinkingField::ThinkingType;
            compat.auto_tool_choice_only = true;
        },
        ..HOSTED
    },
    BuiltinProvider {
        name: "qwen",
        base_url: Some("https://dashscope.aliyuncs.com/compatible-mode/v1"),
        key_variables: &["DASHSCOPE_API_KEY", "QWEN_API_KEY"],
        base_url_variable: "QWEN_BASE_URL",
        dialect: |compat| compat.thinking_field = ThinkingField::EnableThinking,
        ..HOSTED
    },
    BuiltinProvider {
        name: "huggingface",
        base_url: Some("https://router.huggingface.co/v1"),
        key_variables: &["HF_TOKEN", "HUGGINGFACE_API_KEY"],
        base_url_variable: "HUGGINGFACE_BASE_URL",
        ..HOSTED
    },
    BuiltinProvider {
        name: "perplexity",
        base_url: Some("https://api.perplexity.ai"),
        key_variables: &["PERPLEXITY_API_KEY"],
        base_url_variable: "PERPLEXITY_BASE_URL",
        dialect: |compat| {
            compat.no_stream_options = true;
            compat.no_user_after_result = true;
        },
        ..HOSTED
    },
    BuiltinProvider {
        name: "github-models",
        base_url: Some("https://models.github.ai/inference"),
        key_variables: &["GITHUB_MODELS_TOKEN", "GITHUB_TOKEN"],
        base_url_variable: "GITHUB_MODELS_BASE_URL",
        ..HOSTED
    },
    BuiltinProvider {
        name: "azure",
        key_variables: &["AZURE_OPENAI_API_KEY"],
        base_url_variable: "AZURE_OPENAI_BASE_URL",
        host_variables: &[HostVariable { name: "AZURE_OPENAI_ENDPOINT", path: "/openai/v1" }],
        auth: Some(AuthScheme::ApiKey),
        dialect: |compat| compat.max_tokens_field = MaxTokensField::MaxCompletionTokens,
        ..HOSTED
    },
    BuiltinProvider {
        name: "databricks",
        key_variables: &["DATABRICKS_TOKEN"],
        base_url_variable: "DATABRICKS_BASE_URL",
        host_variables: &[HostVariable { name: "DATABRICKS_HOST", path: "/serving-endpoints" }],
        ..HOSTED
    },
    local("ollama", "http://127.0.0.1:11434/v1", &["OLLAMA_API_KEY"], "OLLAMA_BASE_URL", templates),
    local(
        "lmstudio",
        "http://127.0.0.1:1234/v1",
        &["LMSTUDIO_API_KEY"],
        "LMSTUDIO_BASE_URL",
        samples_by_grammar,
    ),
    local("vllm", "http://127.0.0.1:8000/v1", &["VLLM_API_KEY"], "VLLM_BASE_URL", templates),
    local(
        "llamacpp",
        "http://127.0.0.1:8080/v1",
        &["LLAMACPP_API_KEY"],
        "LLAMACPP_BASE_URL",
        samples_by_grammar,
    ),
];

/// A server that puts requests through a chat template of any model.
fn templates(compat: &mut Compat) {
    compat.no_user_after_result = true;
}

/// The server is llama.cpp's, or has it inside.
fn samples_by_grammar(compat: &mut Compat) {
    templates(compat);
    compat.schema_form = SchemaForm::Grammar;
}

/// A server on the own machine: no key needed, and chat templates of any model, of which some
/// want an answer between a tool's result and what the user says.
const fn local(
    name: &'static str,
    base_url: &'static str,
    key_variables: &'static [&'static str],
    base_url_variable: &'static str,
    dialect: fn(&mut Compat),
) -> BuiltinProvider {
    BuiltinProvider {
        name,
        base_url: Some(base_url),
        key_variables,
        base_url_variable,
        key_need: KeyNeed::Optional,
        dialect,
        ..HOSTED
    }
}

impl BuiltinProvider {
    /// The built-in provider of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        BUILTIN_PROVIDERS.iter().find(|provider| provider.name == name)
    }

    /// The provider's dialect.
    pub fn compat(&self) -> Compat {
        let mut compat = Compat::default();
        (self.dialect)(&mut compat);
        compat
    }

    /// The name under which its key is kept: its own, or that of the provider whose account it shares.
    pub fn account(&self) -> &'static str {
        self.account.unwrap_or(self.name)
    }

    /// Where it is, by these variables or by itself. `None` where each customer has an address of
    /// their own and no variable names it.
    pub fn address(&self, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let moved = set(self.base_url_variable);
        let on_host = || {
            let mut hosts = self.host_variables.iter();
            hosts.find_map(|host| Some(host.address(&set(host.name)?)))
        };
        moved.or_else(on_host).or_else(|| self.base_url.map(str::to_owned))
    }

    /// What is known of its models: they belong to the account.
    pub fn models(&self) -> Vec<ModelInfo> {
        catalogue::models_of(self.account())
    }

    /// The provider's entry, without a key. Its address is empty where only its customer knows it.
    pub fn entry(&self) -> ProviderEntry {
        let base_url = self.base_url.unwrap_or_default();
        let mut entry = ProviderEntry::new(self.name, self.api, base_url);
        entry.key_need = self.key_need;
        entry.auth = self.auth.unwrap_or(entry.auth);
        entry.key_hint = self.key_variables.first().map(|variable| (*variable).to_owned());
        entry.compat = self.compat();
        entry.models = self.models().into();
        entry
    }
}

impl HostVariable {
    /// The API's address on a host that is written in any usual way.
    fn address(&self, host: &str) -> String {
        let host = host.trim().trim_end_matches('/');
        let scheme = if host.contains("://") { "" } else { "https://" };
        let path = if host.ends_with(self.path) { "" } else { self.path };
        format!("{scheme}{host}{path}")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_and_variables_are_unique_and_addresses_are_whole() {
        let mut names = HashSet::new();
        let mut variables = HashSet::new();
        for provider in BUILTIN_PROVIDERS {
            let name = provider.name;
            assert!(names.insert(name), "{name}");
            let hosts = provider.host_variables.iter().map(|host| host.name);
            let own = provider.key_variables.iter().copied().chain(hosts);
            for variable in own.chain([provider.base_url_variable]) {
                // Who shares an account shares its variables, all of them.
                assert_eq!(variables.insert(variable), provider.account.is_none(), "{variable}");
            }
            let entry = provider.entry();
            let local = entry.base_url.starts_with("http://127.0.0.1:");
            assert!(local || entry.base_url.starts_with("https://") || provider.base_url.is_none());
            assert_eq!(local, entry.key_need == KeyNeed::Optional, "{name}");
            assert!(entry.key_hint.is_some(), "{name}");
        }
        for account in BUILTIN_PROVIDERS.iter().filter_map(|provider| provider.account) {
            assert!(names.contains(account), "{account}");
        }
    }

    #[test]
    fn every_listed_provider_is_there() {
        let listed = [
            "anthropic",
            "openai",
            "openai-responses",
            "gemini",
            "deepseek",
            "groq",
            "xai",
            "mistral",
            "openrouter",
            "qwen",
            "moonshot",
            "zhipu",
            "together",
            "fireworks",
            "cerebras",
            "perplexity",
            "huggingface",
            "github-models",
            "azure",
            "databricks",
            "vllm",
            "llamacpp",
            "ollama",
            "lmstudio",
        ];
        let names: HashSet<&str> = BUILTIN_PROVIDERS.iter().map(|provider| provider.name).collect();
        assert_eq!(names, HashSet::from(listed));
    }

    #[test]
    fn an_address_is_found_in_every_usual_variable() {
        let azure = "https://mine.openai.azure.com/openai/v1";
        let databricks = "https://adb-1.azuredatabricks.net/serving-endpoints";
        for (provider, variable, value, address) in [
            ("azure", "AZURE_OPENAI_BASE_URL", "http://h/v1", Some("http://h/v1")),
            ("azure", "AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com/", Some(azure)),
            ("azure", "AZURE_OPENAI_ENDPOINT", azure, Some(azure)),
            ("azure", "AZURE_OPENAI_ENDPOINT", " ", None),
            ("azure", "OPENAI_BASE_URL", "http://h/v1", None),
            ("databricks", "DATABRICKS_HOST", "adb-1.azuredatabricks.net", Some(databricks)),
            ("databricks", "DATABRICKS_HOST", databricks, Some(databricks)),
            ("ollama", "OTHER", "x", Some("http://127.0.0.1:11434/v1")),
            ("ollama", "OLLAMA_BASE_URL", "http://h/v1", Some("http://h/v1")),
            ("openai-responses", "OPENAI_BASE_URL", "http://h/v1", Some("http://h/v1")),
        ] {
            let found = BuiltinProvider::find(provider)
                .unwrap()
                .address(|name| (name == variable).then(|| value.to_owned()));
            assert_eq!(found.as_deref(), address, "{provider} {variable}={value}");
        }
    }

    #[test]
    fn the_key_travels_as_each_provider_wants() {
        for (provider, auth) in [
            ("azure", AuthScheme::ApiKey),
            ("databricks", AuthScheme::Bearer),
            ("anthropic", AuthScheme::XApiKey),
            ("gemini", AuthScheme::XGoogApiKey),
        ] {
            assert_eq!(BuiltinProvider::find(provider).unwrap().entry().auth, auth, "{provider}");
        }
    }
}
