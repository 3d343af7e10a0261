//! OpenAI's Chat Completions and its dialects.

pub(crate) mod encode;
