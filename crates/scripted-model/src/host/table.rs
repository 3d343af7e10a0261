//! The hosts, as their documentation, their errors and their users' reports describe them.

use serde_json::{Value, json};

use super::chat::{ChatRules, OPEN, Reasoning};
use super::{Host, Speaks};

/// What most hosts read.
const COMMON_IMAGES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

/// What Gemini reads.
const GOOGLE_IMAGES: &[&str] =
    &["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"];

/// What hosts with a closed list of fields know at the top of a body.
const CLOSED_BODY: &[&str] = &[
    "model",
    "messages",
    "stream",
    "temperature",
    "top_p",
    "max_tokens",
    "stop",
    "random_seed",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "prompt_mode",
    "reasoning_effort",
    "n",
    "safe_prompt",
];

/// What they know in a message.
const CLOSED_MESSAGE: &[&str] = &["role", "content", "name", "tool_calls", "tool_call_id"];

/// A chat template that insists on turns, as many models on the own machine have one.
const TEMPLATE: ChatRules = ChatRules {
    instructions_first: true,
    begins_with_user: true,
    ends_with_user: true,
    alternates: true,
    answers_results: true,
    ..OPEN
};

pub(super) const HOSTS: &[Host] = &[
    Host { name: "anthropic", images: COMMON_IMAGES, speaks: Speaks::Messages, error: None },
    Host {
        name: "openai-responses",
        images: COMMON_IMAGES,
        speaks: Speaks::Responses,
        error: None,
    },
    Host { name: "gemini", images: GOOGLE_IMAGES, speaks: Speaks::Generate, error: None },
    chat(
        "openai",
        None,
        ChatRules {
            instruction_roles: &["system", "developer"],
            caps: &["max_completion_tokens"],
            ..OPEN
        },
    ),
    Host {
        images: &[],
        ..chat(
            "deepseek",
            None,
            ChatRules {
                begins_with_user: true,
                ends_with_user: true,
                alternates: true,
                reasoning: Reasoning::InCallingTurns,
                ..OPEN
            },
        )
    },
    chat("openrouter", Some(openrouter), OPEN),
    chat("groq", None, ChatRules { message_fields: CLOSED_MESSAGE, ..OPEN }),
    Host { images: &["image/png", "image/jpeg"], ..chat("xai", Some(xai), OPEN) },
    chat(
        "mistral",
        Some(mistral),
        ChatRules {
            body_fields: CLOSED_BODY,
            message_fields: CLOSED_MESSAGE,
            caps: &["max_tokens"],
            nine_character_ids: true,
            ends_with_user: true,
            answers_results: true,
            ..OPEN
        },
    ),
    chat("together", None, OPEN),
    chat("fireworks", None, OPEN),
    Host {
        images: &[],
        ..chat(
            "cerebras",
            Some(cerebras),
            ChatRules { message_fields: CLOSED_MESSAGE, caps: &["max_completion_tokens"], ..OPEN },
        )
    },
    chat("moonshot", None, ChatRules { reasoning: Reasoning::WithCalls, ..OPEN }),
    chat("zhipu", Some(zhipu), ChatRules { caps: &["max_tokens"], ends_with_user: true, ..OPEN }),
    chat("qwen", None, OPEN),
    chat("huggingface", None, OPEN),
    chat(
        "perplexity",
        Some(perplexity),
        ChatRules {
            message_fields: CLOSED_MESSAGE,
            caps: &["max_tokens"],
            instructions_first: true,
            begins_with_user: true,
            ends_with_user: true,
            alternates: true,
            answers_results: true,
            ..OPEN
        },
    ),
    chat("github-models", None, OPEN),
    // Deployments are of OpenAI's models, the newer of which know one cap only.
    chat("azure", None, ChatRules { caps: &["max_completion_tokens"], ..OPEN }),
    chat("databricks", None, ChatRules { caps: &["max_tokens"], ..OPEN }),
    chat("ollama", None, TEMPLATE),
    chat("lmstudio", None, TEMPLATE),
    chat("vllm", Some(vllm), TEMPLATE),
    chat("llamacpp", Some(llamacpp), TEMPLATE),
];

const fn chat(name: &'static str, error: Option<fn(&str, u16) -> Value>, rules: ChatRules) -> Host {
    Host { name, images: COMMON_IMAGES, speaks: Speaks::Chat(rules), error }
}

fn mistral(message: &str, _: u16) -> Value {
    json!({
        "object": "error",
        "message": message,
        "type": "invalid_request_error",
        "param": null,
        "code": "3230",
    })
}

fn xai(message: &str, _: u16) -> Value {
    json!({"code": "Client specified an invalid argument", "error": message})
}

fn cerebras(message: &str, _: u16) -> Value {
    json!({
        "message": message,
        "type": "invalid_request_error",
        "param": null,
        "code": "wrong_api_format",
    })
}

fn openrouter(message: &str, status: u16) -> Value {
    json!({"error": {"message": message, "code": status}, "user_id": "user_scripted"})
}

fn zhipu(message: &str, _: u16) -> Value {
    json!({"error": {"code": "1214", "message": message}})
}

fn perplexity(message: &str, status: u16) -> Value {
    json!({"error": {"message": message, "type": "invalid_message", "code": status}})
}

fn vllm(message: &str, status: u16) -> Value {
    json!({"error": {
        "message": message, "type": "BadRequestError", "param": null, "code": status,
    }})
}

fn llamacpp(message: &str, status: u16) -> Value {
    json!({"error": {"code": status, "message": message, "type": "invalid_request_error"}})
}
