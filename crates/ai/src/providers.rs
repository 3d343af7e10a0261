//! One module an API: its private wire types, and how they become events.

pub(crate) mod anthropic_messages;
pub(crate) mod blocks;
mod json_extent;
pub(crate) mod lenient;
pub(crate) mod openai_chat;
pub(crate) mod payload;
mod stop_word;
