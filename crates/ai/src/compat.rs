//! [`Compat`]: what differs between hosts of the same API, as data.
//!
//! Encoders and decoders ask this value and never a host's name. A provider entry in configuration
//! may set each field.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::builtin_providers::BuiltinProvider;

/// How one provider's dialect differs from its API's plain form. The default is the plain form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Compat {
    /// The model writes its thinking as `<think>…</think>` inside its text.
    pub thinking_tags: bool,
    /// The host counts reasoning tokens beside the output tokens instead of among them.
    pub reasoning_beside_output: bool,
    /// Which field carries the cap on output tokens (Chat Completions).
    pub max_tokens_field: MaxTokensField,
    /// Which role carries the system prompt (Chat Completions).
    pub system_role: SystemRole,
    /// Whether the model's `reasoning_content` goes back to it (Chat Completions).
    pub reasoning_replay: ReasoningReplay,
    /// Which field says how much the model shall think (Chat Completions).
    pub thinking_field: ThinkingField,
    /// Which tool call ids the host accepts.
    pub tool_ids: ToolIdForm,
    /// The host refuses `stream_options` (Chat Completions).
    pub no_stream_options: bool,
    /// The host or its model refuses to be asked for encrypted reasoning (Responses).
    pub no_encrypted_reasoning: bool,
    /// The host refuses to be asked for summaries of the model's reasoning (Responses), as it does
    /// for organisations that are not verified.
    pub no_reasoning_summary: bool,
    /// The host refuses `cache_control` (Messages).
    pub no_cache_control: bool,
    /// The model reads text only: images are replaced by a note that says so.
    pub text_only: bool,
    /// What the host takes of a tool's schema.
    pub schema_form: SchemaForm,
    /// The host can hold the model to a tool's schema, and is asked to where the schema allows it
    /// (Chat Completions, Responses).
    pub strict_tools: bool,
    /// The host refuses every `tool_choice` but `auto`: what a request asks of the choice is not sent.
    pub auto_tool_choice_only: bool,
    /// Which images the model reads, if it reads any; others are replaced by a note.
    pub image_types: ImageTypes,
    /// The host, or a chat template of its models, refuses what the user says right behind a tool's
    /// result (Chat Completions): a few words of the assistant are put between.
    pub no_user_after_result: bool,
}

impl Compat {
    /// The dialect of the built-in provider of this name; the plain form for any other name.
    pub fn for_provider(name: &str) -> Self {
        BuiltinProvider::find(name).map(BuiltinProvider::compat).unwrap_or_default()
    }
}

/// The name of the cap on output tokens in Chat Completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MaxTokensField {
    /// The old name, which all hosts but OpenAI's reasoning models take.
    #[default]
    MaxTokens,
    /// The new name.
    MaxCompletionTokens,
}

/// The role of the system prompt in Chat Completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SystemRole {
    /// `system`, which every host takes.
    #[default]
    System,
    /// `developer`, as OpenAI's reasoning models call it.
    Developer,
}

/// When a model's own `reasoning_content` is sent back to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReasoningReplay {
    /// Never: the host ignores or refuses it.
    #[default]
    Never,
    /// With messages that made tool calls, where the host requires it.
    WithToolCalls,
    /// With every message.
    Always,
}

/// Where Chat Completions says how much the model shall think.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ThinkingField {
    /// `reasoning_effort`, a word.
    #[default]
    ReasoningEffort,
    /// `reasoning`, an object with `effort`, `max_tokens` or `enabled`.
    ReasoningObject,
    /// `thinking`, an object whose `type` is `enabled` or `disabled`; a word goes beside it into
    /// `reasoning_effort`.
    ThinkingType,
    /// `enable_thinking`, with `thinking_budget` where there is one.
    EnableThinking,
}

/// Types of images, as far as hosts of one API differ in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ImageTypes {
    /// What the API names: PNG, JPEG and WebP everywhere, GIF but for Google's, which takes HEIC and
    /// HEIF instead.
    #[default]
    OfApi,
    /// PNG and JPEG alone.
    PngAndJpeg,
}

/// The form of tool call ids that a host accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolIdForm {
    /// Letters, digits, `_` and `-`, up to the API's length.
    #[default]
    Plain,
    /// Exactly nine letters and digits, as Mistral asks.
    NineAlphanumerics,
}

/// What a host takes of a tool's schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SchemaForm {
    /// JSON Schema; references to the schema's own definitions stay, but for Google's.
    #[default]
    JsonSchema,
    /// JSON Schema, each reference replaced with what it points to.
    NoReferences,
    /// The subset of OpenAPI 3.0 that Google's `parameters` take.
    #[serde(rename = "openapi")]
    OpenApi,
    /// What becomes a grammar for the sampler, as in llama.cpp: without patterns, long repetitions and
    /// schemas that have no type. Google's API has none; to it this is `no_references`.
    Grammar,
}
