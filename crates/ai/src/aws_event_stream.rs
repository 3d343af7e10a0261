//! [`AwsEventStream`]: the binary framing of Amazon's streaming responses, without I/O.
//!
//! A frame is a prelude (total length, length of the headers, CRC-32 of both), headers, a payload and
//! the CRC-32 of everything before it, all numbers big-endian; the format is described in Amazon
//! Transcribe's and Bedrock's documentation as `application/vnd.amazon.eventstream`. Bedrock puts
//! another API's JSON into a frame as base64 under `bytes`; that is taken out here.

use data_encoding::BASE64;
use serde::Deserialize;

use crate::providers::lenient::{Maybe, Text};

/// The largest frame that is taken in. Amazon's own limit is 16 MiB of payload.
const MAX_FRAME_BYTES: usize = 32 * 1024 * 1024;

/// Two lengths and their checksum.
const PRELUDE_BYTES: usize = 12;

/// The checksum at a frame's end.
const CHECKSUM_BYTES: usize = 4;

/// What a frame brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// A payload of the API inside.
    Payload(&'a [u8]),
    /// The service failed.
    Exception {
        /// The service's name for it.
        kind: &'a str,
        /// What it says, usually JSON with a message.
        body: &'a [u8],
    },
}

/// Bytes that are no such stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadFrame {
    #[error("a frame's length makes no sense")]
    Length,
    #[error("a frame's checksum does not match")]
    Checksum,
    #[error("a frame's headers cannot be read")]
    Headers,
    #[error("a frame's bytes are not base64")]
    Base64,
}

/// Cuts bytes into frames.
#[derive(Debug, Default)]
pub(crate) struct AwsEventStream {
    /// The frame that is being collected.
    partial: Vec<u8>,
}

/// How Bedrock wraps a payload.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Wrapped<'a> {
    #[serde(borrow)]
    bytes: Text<'a>,
}

impl AwsEventStream {
    /// Hands each frame that ends in these bytes to `sink`.
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        sink: &mut dyn FnMut(Frame<'_>),
    ) -> Result<(), BadFrame> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let wanted = match frame_length(&self.partial)? {
                Some(length) => length,
                None => PRELUDE_BYTES,
            };
            let (more, after) = rest.split_at(rest.len().min(wanted - self.partial.len()));
            self.partial.extend_from_slice(more);
            rest = after;
            if frame_length(&self.partial)? == Some(self.partial.len()) {
                open_frame(&self.partial, sink)?;
                self.partial.clear();
            }
        }
        Ok(())
    }
}

/// The length that a frame's prelude tells, once the prelude is there.
fn frame_length(frame: &[u8]) -> Result<Option<usize>, BadFrame> {
    let Some((prelude, _)) = frame.split_at_checked(PRELUDE_BYTES) else { return Ok(None) };
    let length = number(prelude, 0).ok_or(BadFrame::Length)?;
    let headers = number(prelude, 4).ok_or(BadFrame::Length)?;
    let least = PRELUDE_BYTES + CHECKSUM_BYTES;
    if length > MAX_FRAME_BYTES || headers > length || length - headers < least {
        return Err(BadFrame::Length);
    }
    if number(prelude, 8) != Some(checksum(&prelude[..8])) {
        return Err(BadFrame::Checksum);
    }
    Ok(Some(length))
}

fn open_frame(frame: &[u8], sink: &mut dyn FnMut(Frame<'_>)) -> Result<(), BadFrame> {
    let (body, _) = frame.split_at_checked(frame.len() - CHECKSUM_BYTES).ok_or(BadFrame::Length)?;
    if number(frame, body.len()) != Some(checksum(body)) {
        return Err(BadFrame::Checksum);
    }
    let headers = number(frame, 4).ok_or(BadFrame::Length)?;
    let (headers, payload) = body
        .get(PRELUDE_BYTES..)
        .and_then(|rest| rest.split_at_checked(headers))
        .ok_or(BadFrame::Length)?;
    let mut kind = "";
    let mut exception = "";
    let mut message = "";
    let mut rest = headers;
    while !rest.is_empty() {
        let (name, value, after) = header(rest).ok_or(BadFrame::Headers)?;
        match name {
            ":message-type" => kind = value,
            ":error-message" => message = value,
            ":exception-type" | ":error-code" => exception = value,
            _ => {}
        }
        rest = after;
    }
    if kind == "exception" || kind == "error" {
        // An exception has a body; an error has its message among the headers.
        let body = if payload.is_empty() { message.as_bytes() } else { payload };
        sink(Frame::Exception { kind: exception, body });
        return Ok(());
    }
    match serde_json::from_slice::<Maybe<Wrapped<'_>>>(payload) {
        Ok(Maybe(Some(Wrapped { bytes }))) if !bytes.is_empty() => {
            let inner = BASE64.decode(bytes.as_str().as_bytes()).map_err(|_| BadFrame::Base64)?;
            sink(Frame::Payload(&inner));
        }
        Ok(_) | Err(_) => sink(Frame::Payload(payload)),
    }
    Ok(())
}

/// One header: its name, its value where that is text, and what follows it.
fn header(bytes: &[u8]) -> Option<(&str, &str, &[u8])> {
    let (length, rest) = bytes.split_first()?;
    let (name, rest) = rest.split_at_checked(usize::from(*length))?;
    let (kind, rest) = rest.split_first()?;
    let fixed = match kind {
        0 | 1 => Some(0),
        2 => Some(1),
        3 => Some(2),
        4 => Some(4),
        5 | 8 => Some(8),
        6 | 7 => None,
        9 => Some(16),
        _ => return None,
    };
    let (length, rest) = match fixed {
        Some(length) => (length, rest),
        None => {
            let (length, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
    };
    let (value, rest) = rest.split_at_checked(length)?;
    Some((std::str::from_utf8(name).ok()?, std::str::from_utf8(value).unwrap_or_default(), rest))
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let digits = bytes.get(at..)?.first_chunk::<4>()?;
    usize::try_from(u32::from_be_bytes(*digits)).ok()
}

/// CRC-32 with the reflected polynomial of IEEE 802.3, as zlib has it.
fn checksum(bytes: &[u8]) -> usize {
    let crc = bytes.iter().fold(u32::MAX, |crc, byte| {
        let at = usize::from(crc.to_le_bytes()[0] ^ byte);
        CRC_TABLE[at] ^ (crc >> 8)
    });
    usize::try_from(!crc).unwrap_or_default()
}

const CRC_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < table.len() {
        let mut crc = at as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 };
            bit += 1;
        }
        table[at] = crc;
        at += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::{AwsEventStream, BadFrame, Frame, checksum};

    fn frame(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
        let mut encoded = Vec::new();
        for (name, value) in headers {
            encoded.push(u8::try_from(name.len()).expect("short"));
            encoded.extend_from_slice(name.as_bytes());
            encoded.push(7);
            encoded.extend_from_slice(&u16::try_from(value.len()).expect("short").to_be_bytes());
            encoded.extend_from_slice(value.as_bytes());
        }
        let mut frame = Vec::new();
        push_number(&mut frame, encoded.len() + payload.len() + 16);
        push_number(&mut frame, encoded.len());
        let prelude = checksum(&frame);
        push_number(&mut frame, prelude);
        frame.extend(encoded);
        frame.extend_from_slice(payload);
        let all = checksum(&frame);
        push_number(&mut frame, all);
        frame
    }

    fn push_number(frame: &mut Vec<u8>, number: usize) {
        frame.extend_from_slice(&u32::try_from(number).expect("small").to_be_bytes());
    }

    fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<String>, BadFrame> {
        let mut decoder = AwsEventStream::default();
        let mut frames = Vec::new();
        for piece in pieces {
            decoder.push(piece, &mut |frame| {
                frames.push(match frame {
                    Frame::Payload(data) => String::from_utf8_lossy(data).into_owned(),
                    Frame::Exception { kind, body } => {
                        format!("{kind}: {}", String::from_utf8_lossy(body))
                    }
                });
            })?;
        }
        Ok(frames)
    }

    #[test]
    fn the_checksum_is_the_one_that_is_published() {
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn frames_are_the_same_however_the_bytes_are_cut() {
        let event = [(":message-type", "event"), (":event-type", "chunk")];
        let exception =
            [(":message-type", "exception"), (":exception-type", "throttlingException")];
        let error = [
            (":message-type", "error"),
            (":error-code", "internalFailure"),
            (":error-message", "no"),
        ];
        let body = [
            frame(&event, br#"{"bytes":"eyJhIjoxfQ==","p":"abc"}"#),
            frame(&event, br#"{"plain":true}"#),
            frame(&exception, br#"{"message":"slow"}"#),
            frame(&error, b""),
        ]
        .concat();
        let expected = Ok(vec![
            r#"{"a":1}"#.to_owned(),
            r#"{"plain":true}"#.to_owned(),
            r#"throttlingException: {"message":"slow"}"#.to_owned(),
            "internalFailure: no".to_owned(),
        ]);
        assert_eq!(decode([&body[..]]), expected);
        assert_eq!(decode(body.chunks(1)), expected);
    }

    #[test]
    fn damaged_frames_are_refused() {
        let good = frame(&[(":message-type", "event")], b"{}");
        let damaged = |at: usize| {
            let mut bad = good.clone();
            bad[at] ^= 1;
            bad
        };
        for (bytes, expected) in [
            (damaged(3), BadFrame::Checksum),
            (damaged(8), BadFrame::Checksum),
            (damaged(good.len() - 5), BadFrame::Checksum),
            (b"{\"message\": \"no frame\"}".to_vec(), BadFrame::Length),
            (frame(&[], br#"{"bytes":"?"}"#), BadFrame::Base64),
        ] {
            assert_eq!(decode([&bytes[..]]), Err(expected));
        }
    }
}
