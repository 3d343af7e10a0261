//! Temporary: replaced at merge.
use crate::api::Api;
use crate::compat::Compat;
use crate::error::{ErrorKind, ProviderError};
use crate::event::StreamEvent;
use crate::message::{StopReason, Usage};

/// How a body is cut into events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events.
    Sse,
    /// A JSON value a line.
    Ndjson,
}

/// What a decoder must know beside the API.
#[derive(Clone, Debug)]
pub struct DecodeOptions {
    /// Provider.
    pub provider: String,
    /// Model.
    pub model: String,
    /// Dialect.
    pub compat: Compat,
    /// Framing.
    pub framing: Framing,
}

/// Bytes in, events out.
#[derive(Debug)]
pub struct StreamDecoder {
    api: Api,
    options: DecodeOptions,
    buffer: Vec<u8>,
    started: bool,
    finished: bool,
    stop: Option<String>,
}

impl StreamDecoder {
    /// A decoder.
    pub fn new(api: Api, options: DecodeOptions) -> Self {
        Self { api, options, buffer: Vec::new(), started: false, finished: false, stop: None }
    }

    /// Takes bytes.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<StreamEvent>) {
        self.buffer.extend_from_slice(bytes);
        while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.buffer.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let Some(data) = line.trim().strip_prefix("data: ") else { continue };
            let Ok(value) = serde_json::from_str::<serde_json::Value>(data) else { continue };
            match value["type"].as_str().unwrap_or_default() {
                "message_start" => {
                    self.started = true;
                    out.push(StreamEvent::Start {
                        provider: self.options.provider.clone(),
                        api: self.api.to_string(),
                        model: self.options.model.clone(),
                    });
                }
                "content_block_delta" => out.push(StreamEvent::TextDelta {
                    index: 0,
                    delta: value["delta"]["text"].as_str().unwrap_or_default().to_owned(),
                }),
                "message_delta" => {
                    self.stop = value["delta"]["stop_reason"].as_str().map(str::to_owned);
                }
                "message_stop" => {
                    self.finished = true;
                    out.push(StreamEvent::Done {
                        stop_reason: StopReason::Stop,
                        stop_raw: self.stop.take(),
                        usage: Usage::default(),
                    });
                }
                "error" => {
                    self.finished = true;
                    out.push(StreamEvent::failed(crate::error_response::from_body(
                        None,
                        &[],
                        data.as_bytes(),
                    )));
                }
                _ => {}
            }
        }
    }

    /// The stream is over.
    pub fn finish(&mut self, out: &mut Vec<StreamEvent>) {
        if !self.finished {
            self.finished = true;
            out.push(StreamEvent::failed(ProviderError::new(
                ErrorKind::TruncatedStream,
                "the stream ended without its end marker",
            )));
        }
    }

    /// Whether the end was seen.
    pub fn is_finished(&self) -> bool {
        self.finished
    }
}
