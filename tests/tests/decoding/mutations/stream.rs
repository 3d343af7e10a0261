//! [`Stream`]: what mutations begin with, as the units that a stream is made of.

use std::str::FromStr;

use ai::{Api, Compat, DecodeOptions, Framing};
use tests::recordings;

use crate::{answers, body, chats, generates, messages, responses};

/// A stream before it is mutated.
pub(super) struct Stream {
    pub(super) name: String,
    pub(super) api: Api,
    pub(super) options: DecodeOptions,
    /// Events with their blank lines, lines with their ends, or the payloads of frames.
    pub(super) units: Vec<Vec<u8>>,
}

/// The streams of this suite, and the recorded ones where they are.
pub(super) fn all() -> Vec<Stream> {
    let mut streams = Vec::new();
    for (api, written) in [
        (Api::OpenaiChat, chats()),
        (Api::AnthropicMessages, messages()),
        (Api::OpenaiResponses, responses::responses()),
        (Api::GoogleGenerate, generates()),
    ] {
        for stream in written {
            let payloads: Vec<&str> = stream.chunks.iter().map(String::as_str).collect();
            // As events, and as bare payloads with nothing around them.
            for body in [body(&payloads), payloads.join("\n")] {
                let compat = Compat::default();
                streams.push(Stream::new(stream.name, api, compat, Framing::Sse, body.as_bytes()));
            }
        }
    }
    for (api, answer, _) in answers() {
        let compat = Compat::default();
        streams.push(Stream::new("a whole answer", api, compat, Framing::Sse, answer.as_bytes()));
    }
    for recording in recordings::all().unwrap_or_default() {
        let Ok(api) = Api::from_str(&recording.api) else { continue };
        let Ok(framing) = Framing::from_str(&recording.framing) else { continue };
        let compat = Compat::for_provider(&recording.provider);
        streams.push(Stream::new(&recording.name, api, compat, framing, &recording.body()));
    }
    streams
}

impl Stream {
    fn new(name: &str, api: Api, compat: Compat, framing: Framing, body: &[u8]) -> Self {
        let options =
            DecodeOptions { provider: "p".into(), model: "asked".into(), compat, framing };
        let units = match framing {
            Framing::AwsEventStream => frames(body),
            _ => events(body),
        };
        Self { name: name.to_owned(), api, options, units }
    }

    /// The units as they are in another framing; frames stay what they are.
    pub(super) fn units_in(&self, framing: Framing) -> Vec<Vec<u8>> {
        if framing == self.options.framing || self.options.framing == Framing::AwsEventStream {
            return self.units.clone();
        }
        let lines = self.units.iter().flat_map(|unit| unit.split(|byte| *byte == b'\n'));
        let payloads = lines.filter_map(|line| line.strip_prefix(b"data: "));
        match framing {
            Framing::AwsEventStream => payloads.map(<[u8]>::to_vec).collect(),
            _ => payloads.map(|payload| [payload, b"\n"].concat()).collect(),
        }
    }

    /// A framing that [`Self::units_in`] can bring the units to.
    pub(super) fn can_be_in(&self, framing: Framing) -> bool {
        self.options.framing == Framing::Sse || self.options.framing == framing
    }
}

/// The parts that end with a blank line, and the rest.
fn events(body: &[u8]) -> Vec<Vec<u8>> {
    let mut events = vec![Vec::new()];
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        if let Some(event) = events.last_mut() {
            event.extend_from_slice(line);
        }
        if line.trim_ascii().is_empty() {
            events.push(Vec::new());
        }
    }
    events.retain(|event| !event.is_empty());
    events
}

/// The payloads of Amazon's frames.
fn frames(mut body: &[u8]) -> Vec<Vec<u8>> {
    let number = |bytes: &[u8], at: usize| {
        let digits = bytes.get(at..)?.first_chunk::<4>()?;
        usize::try_from(u32::from_be_bytes(*digits)).ok()
    };
    let mut payloads = Vec::new();
    while let (Some(length), Some(headers)) = (number(body, 0), number(body, 4)) {
        let (frame, rest) = body.split_at(length);
        payloads.push(frame[12 + headers..length - 4].to_vec());
        body = rest;
    }
    payloads
}

/// Units as one body.
pub(super) fn joined(units: &[Vec<u8>], framing: Framing) -> Vec<u8> {
    match framing {
        Framing::AwsEventStream => units.iter().flat_map(|payload| frame(payload)).collect(),
        _ => units.concat(),
    }
}

/// A frame around a payload: two lengths, their checksum, one header, the payload, the checksum of all.
fn frame(payload: &[u8]) -> Vec<u8> {
    const HEADER: &[u8] = b"\x0d:message-type\x07\x00\x05event";
    let number = |number: usize| u32::try_from(number).expect("a small frame").to_be_bytes();
    let mut frame = Vec::new();
    frame.extend(number(16 + HEADER.len() + payload.len()));
    frame.extend(number(HEADER.len()));
    frame.extend(checksum(&frame).to_be_bytes());
    frame.extend_from_slice(HEADER);
    frame.extend_from_slice(payload);
    frame.extend(checksum(&frame).to_be_bytes());
    frame
}

/// CRC-32 with the reflected polynomial of IEEE 802.3, bit by bit.
fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 }
        })
    })
}
