//! [`StreamDecoder`]: a response body's bytes in, events out, without I/O.
//!
//! Joins a framing (how payloads are cut out of bytes) with an API (what payloads mean). Bytes may
//! come in any pieces; the events are the same. Any bytes at all give a stream of the event grammar
//! with exactly one end. What is held is bounded by named limits. A host that does not stream and
//! answers with one JSON object is decoded as well: that object is the one payload of its stream.
//!
//! ```
//! use ai::{Api, DecodeOptions, StreamDecoder, StreamEvent};
//!
//! let body = b"data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n";
//! let mut decoder = StreamDecoder::new(Api::OpenaiChat, DecodeOptions::default());
//! let mut events = Vec::new();
//! decoder.push(body, &mut events);
//! decoder.finish(&mut events);
//! assert!(matches!(events.last(), Some(StreamEvent::Done { .. })));
//! ```

use std::str::FromStr;

use serde::de::IgnoredAny;

use crate::api::Api;
use crate::aws_event_stream::{AwsEventStream, Frame};
use crate::compat::Compat;
use crate::error::{ErrorKind, ProviderError};
use crate::error_response;
use crate::event::StreamEvent;
use crate::json_array::JsonArray;
use crate::lines::{Lines, MAX_LINE_BYTES, TooLong};
use crate::providers::blocks::Blocks;
use crate::providers::payload::{self, Payload};
use crate::providers::{anthropic_messages, google_generate, openai_chat, openai_responses};
use crate::sse::{BYTE_ORDER_MARK, SseDecoder, SseItem};

/// How payloads are cut out of a response body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Framing {
    /// Server-sent events.
    #[default]
    Sse,
    /// One JSON payload a line.
    Ndjson,
    /// Amazon's binary event stream, as Bedrock wraps other APIs' payloads.
    AwsEventStream,
}

/// A name that is no framing's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown framing `{0}`; known are sse, ndjson and aws-eventstream")]
pub struct UnknownFraming(String);

impl FromStr for Framing {
    type Err = UnknownFraming;

    fn from_str(name: &str) -> Result<Self, UnknownFraming> {
        match name {
            "sse" => Ok(Self::Sse),
            "ndjson" => Ok(Self::Ndjson),
            "aws-eventstream" => Ok(Self::AwsEventStream),
            _ => Err(UnknownFraming(name.to_owned())),
        }
    }
}

/// What a decoder is told about the stream before it sees it.
#[derive(Clone, Debug, Default)]
pub struct DecodeOptions {
    /// The provider entry's name, for the `start` event.
    pub provider: String,
    /// The model that was asked for, for streams that do not name theirs.
    pub model: String,
    /// The host's dialect.
    pub compat: Compat,
    /// How the body is cut into payloads.
    pub framing: Framing,
}

/// Decodes one response body. See the module's documentation for what it promises.
#[derive(Debug)]
pub struct StreamDecoder {
    framer: Framer,
    payloads: Payloads,
}

#[derive(Debug)]
enum Framer {
    Sse(SseDecoder),
    Ndjson(Lines),
    AwsEventStream(AwsEventStream),
}

/// Everything behind the framing.
#[derive(Debug)]
struct Payloads {
    api: ApiDecoder,
    blocks: Blocks,
    stray: Stray,
    /// The body is one JSON array of payloads, as Google sends it where nobody asked for events.
    array: Option<JsonArray>,
    /// A payload came.
    any: bool,
}

#[derive(Debug)]
enum ApiDecoder {
    AnthropicMessages(anthropic_messages::decode::Decoder),
    OpenaiChat(Box<openai_chat::decode::Decoder>),
    OpenaiResponses(Box<openai_responses::decode::Decoder>),
    GoogleGenerate(Box<google_generate::decode::Decoder>),
}

impl StreamDecoder {
    /// A decoder at the beginning of a body.
    pub fn new(api: Api, options: DecodeOptions) -> Self {
        let DecodeOptions { provider, model, compat, framing } = options;
        Self {
            framer: match framing {
                Framing::Sse => Framer::Sse(SseDecoder::new()),
                Framing::Ndjson => Framer::Ndjson(Lines::default()),
                Framing::AwsEventStream => Framer::AwsEventStream(AwsEventStream::default()),
            },
            payloads: Payloads {
                api: match api {
                    Api::AnthropicMessages => {
                        ApiDecoder::AnthropicMessages(anthropic_messages::decode::Decoder::default())
                    }
                    Api::OpenaiChat => {
                        ApiDecoder::OpenaiChat(Box::new(openai_chat::decode::Decoder::new(compat)))
                    }
                    Api::OpenaiResponses => ApiDecoder::OpenaiResponses(Box::default()),
                    Api::GoogleGenerate => ApiDecoder::GoogleGenerate(Box::default()),
                },
                blocks: Blocks::new(provider, api, model),
                stray: Stray::default(),
                array: None,
                any: false,
            },
        }
    }

    /// Takes in the next bytes and appends the events that they make to `out`. After the end event
    /// bytes are ignored.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<StreamEvent>) {
        if self.is_finished() {
            return;
        }
        let Self { framer, payloads } = self;
        let framed = match framer {
            Framer::Sse(sse) => {
                sse.push(bytes, &mut |item| payloads.item(item)).map_err(|error| malformed(&error))
            }
            Framer::Ndjson(lines) => lines
                .push(bytes, |line| {
                    payloads.line(line.bytes(), true);
                    Ok(())
                })
                .map_err(|error: TooLong| malformed(&error)),
            Framer::AwsEventStream(frames) => frames
                .push(bytes, &mut |frame| payloads.frame(frame))
                .map_err(|error| malformed(&error)),
        };
        if let Err(error) = framed {
            self.payloads.blocks.fail(error);
        }
        self.payloads.blocks.drain_into(out);
    }

    /// Ends the body and appends what was missing to `out`: the end event, if it has not come.
    pub fn finish(&mut self, out: &mut Vec<StreamEvent>) {
        if self.is_finished() {
            return;
        }
        let Self { framer, payloads } = self;
        match framer {
            Framer::Sse(sse) => {
                if let Err(error) = sse.finish(&mut |item| payloads.item(item)) {
                    payloads.blocks.fail(malformed(&error));
                }
            }
            Framer::Ndjson(lines) => {
                if let Some(line) = lines.take_rest() {
                    payloads.line(&line, false);
                }
            }
            // Half a frame is half a payload, and no payload of these APIs may be missing.
            Framer::AwsEventStream(_) => {}
        }
        payloads.finish();
        payloads.blocks.drain_into(out);
    }

    /// Whether the answer itself is complete, and what is still awaited is at most its usage.
    pub fn has_answer(&self) -> bool {
        self.payloads.has_answer()
    }

    /// Whether the end event was handed out.
    pub fn is_finished(&self) -> bool {
        self.payloads.blocks.has_ended()
    }
}

impl Payloads {
    fn has_answer(&self) -> bool {
        match &self.api {
            ApiDecoder::OpenaiChat(decoder) => decoder.has_finished(),
            // The first two have an end mark, which ends the stream; some models of the third send a
            // reason with every chunk.
            ApiDecoder::AnthropicMessages(_)
            | ApiDecoder::OpenaiResponses(_)
            | ApiDecoder::GoogleGenerate(_) => false,
        }
    }

    fn item(&mut self, item: SseItem<'_>) {
        match item {
            SseItem::Event { name, data, terminated } => {
                let event = Payload { name, data, terminated };
                match payload::one_a_line(event) {
                    Some(payloads) => payloads.for_each(|payload| self.payload(payload)),
                    None => self.payload(event),
                }
            }
            SseItem::Stray(line) => self.stray_line(line),
        }
    }

    fn stray_line(&mut self, line: &[u8]) {
        let begins = !self.any
            && self.stray.is_empty()
            && matches!(self.api, ApiDecoder::GoogleGenerate(_))
            && line.trim_ascii_start().first() == Some(&b'[');
        if self.array.is_none() && !begins {
            self.stray.push(line, self.any);
            return;
        }
        let mut array = self.array.take().unwrap_or_default();
        let pushed = array.push(line, &mut |item| {
            self.payload(Payload { name: "", data: item, terminated: true });
        });
        self.array = Some(array);
        if let Err(error) = pushed {
            self.blocks.fail(malformed(&error));
        }
    }

    fn line(&mut self, line: &[u8], terminated: bool) {
        let mark: &[u8] = if self.any { b"" } else { BYTE_ORDER_MARK };
        let line = line.strip_prefix(mark).unwrap_or(line);
        if !line.trim_ascii().is_empty() {
            self.payload(Payload { name: "", data: line, terminated });
        }
    }

    fn frame(&mut self, frame: Frame<'_>) {
        match frame {
            Frame::Payload(data) => {
                self.payload(Payload { name: "", data, terminated: true });
            }
            Frame::Exception { kind, body } => {
                let headers = [("x-amzn-errortype".to_owned(), kind.to_owned())];
                self.blocks.fail(error_response::from_body(None, &headers, body));
            }
        }
    }

    fn payload(&mut self, payload: Payload<'_>) {
        if self.blocks.has_ended() {
            return;
        }
        self.any = true;
        match &mut self.api {
            ApiDecoder::AnthropicMessages(decoder) => decoder.payload(payload, &mut self.blocks),
            ApiDecoder::OpenaiChat(decoder) => decoder.payload(payload, &mut self.blocks),
            ApiDecoder::OpenaiResponses(decoder) => decoder.payload(payload, &mut self.blocks),
            ApiDecoder::GoogleGenerate(decoder) => decoder.payload(payload, &mut self.blocks),
        }
    }

    /// Makes something of the lines that had no place. Beside a stream's payloads only JSON that says
    /// so is an error; alone they are what the host sent in place of a stream: an error, the whole
    /// answer as one object, or the payloads of a stream without anything around them.
    fn take_stray(&mut self) {
        let stray = std::mem::take(&mut self.stray).0;
        let body = stray.trim_ascii();
        let error = (body.len() <= MAX_STRAY_BYTES).then(|| payload::error_in(body)).flatten();
        if error.is_some() || self.any || body.is_empty() {
            if let Some(error) = error {
                self.blocks.fail(error);
            }
            return;
        }
        if body.first() != Some(&b'{') {
            return self.blocks.fail(no_stream(body));
        }
        let mut whole = Payload { name: "", data: body, terminated: false };
        if let Some(payloads) = payload::one_a_line(whole) {
            return payloads.for_each(|payload| self.payload(payload));
        }
        whole.terminated =
            !serde_json::from_slice::<IgnoredAny>(body).is_err_and(|error| error.is_eof());
        self.payload(whole);
        if whole.terminated && self.blocks.is_empty() && self.blocks.stop_raw.is_none() {
            self.blocks.fail(no_stream(body));
        }
    }

    fn finish(&mut self) {
        if let Some(rest) = self.array.take().and_then(JsonArray::into_rest) {
            self.payload(Payload { name: "", data: &rest, terminated: false });
        }
        self.take_stray();
        if !self.any && !self.blocks.has_ended() {
            self.blocks.fail(ProviderError::new(
                ErrorKind::TruncatedStream,
                "the body ended before the stream began",
            ));
        }
        match &mut self.api {
            ApiDecoder::AnthropicMessages(decoder) => decoder.finish(&mut self.blocks),
            ApiDecoder::OpenaiChat(decoder) => decoder.finish(&mut self.blocks),
            ApiDecoder::OpenaiResponses(decoder) => decoder.finish(&mut self.blocks),
            ApiDecoder::GoogleGenerate(decoder) => decoder.finish(&mut self.blocks),
        }
    }
}

/// Lines that the framing could not place: a bare JSON error, a whole JSON or HTML body.
#[derive(Debug, Default)]
struct Stray(Vec<u8>);

/// How much of them is kept where they are an error or nothing. Error bodies are small. An object
/// alone may be a whole answer, which is as long as a line may be.
const MAX_STRAY_BYTES: usize = 256 * 1024;

impl Stray {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn push(&mut self, line: &[u8], beside_payloads: bool) {
        let line = if self.0.is_empty() { line.trim_ascii_start() } else { line };
        let may_be_answer = !beside_payloads && self.0.first().or(line.first()) == Some(&b'{');
        let most = if may_be_answer { MAX_LINE_BYTES } else { MAX_STRAY_BYTES };
        if !line.is_empty() && self.0.len().saturating_add(line.len()) < most {
            self.0.extend_from_slice(line);
            self.0.push(b'\n');
        }
    }
}

/// The error of a body that is neither a stream nor an answer.
fn no_stream(body: &[u8]) -> ProviderError {
    let what = match body {
        [b'{' | b'[', ..] => "JSON".to_owned(),
        [b'<', ..] => "HTML".to_owned(),
        text => format!(
            "`{}`",
            String::from_utf8_lossy(text).chars().take(MAX_QUOTED).collect::<String>()
        ),
    };
    ProviderError::new(
        ErrorKind::MalformedStream,
        format!("the body is {what}, not a stream of events"),
    )
}

/// How much is quoted of a body that is plain text: enough to recognise who said it.
const MAX_QUOTED: usize = 200;

fn malformed(error: &dyn std::error::Error) -> ProviderError {
    ProviderError::new(ErrorKind::MalformedStream, error.to_string())
}
