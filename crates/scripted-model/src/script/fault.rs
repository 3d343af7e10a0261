//! [`Fault`]: what goes wrong with a scripted answer.
//!
//! `after_bytes` counts bytes of the answer's body. Without it, a fault that ends or holds the
//! connection strikes before the answer's head; with `0`, right after the head.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What goes wrong with a scripted answer. In a file, one flat object with `kind`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Flat", into = "Flat")]
#[non_exhaustive]
pub enum Fault {
    /// `{kind: status, code, headers?, body?}`: an HTTP error instead of an answer.
    Status {
        /// From 200 to 599.
        code: u16,
        /// Added to the usual ones; a name given here replaces the usual one.
        headers: BTreeMap<String, String>,
        /// When absent, what the API says with this code.
        body: Option<FaultBody>,
    },
    /// `{kind: disconnect, after_bytes?}`: the connection is reset (TCP RST).
    Disconnect {
        /// See the module's text.
        after_bytes: Option<usize>,
    },
    /// `{kind: cut, after_bytes?}`: the connection is closed in order (TCP FIN), but the body lacks
    /// its last chunk.
    Cut {
        /// See the module's text.
        after_bytes: Option<usize>,
    },
    /// `{kind: no_end, after_bytes?}`: the body ends as HTTP wants it, but without the API's end.
    NoEnd {
        /// When absent, all content is sent and only the end is missing.
        after_bytes: Option<usize>,
    },
    /// `{kind: stall, after_bytes?}`: silence, with the connection open until the client leaves.
    Stall {
        /// See the module's text.
        after_bytes: Option<usize>,
    },
    /// `{kind: malformed, after_bytes?, garbage?}`: bytes that belong to nothing are put into the
    /// body, which then goes on.
    Malformed {
        /// When absent, they come first.
        after_bytes: Option<usize>,
        /// When absent, an event whose data is not JSON and not UTF-8.
        garbage: Option<String>,
    },
    /// `{kind: error_event, after_bytes?, body?}`: the API's error event inside the stream, which
    /// then ends in order.
    ErrorEvent {
        /// The event comes at the first end of an event at or behind this place; when absent,
        /// first of all.
        after_bytes: Option<usize>,
        /// The event's data; when absent, the API's for being overloaded.
        body: Option<Value>,
    },
    /// `{kind: slow, delay_ms}`: silence before each delta.
    Slow {
        /// Milliseconds.
        delay_ms: u64,
    },
}

impl Fault {
    /// An HTTP error with the body that the API has for it.
    pub fn status(code: u16) -> Self {
        Self::Status { code, headers: BTreeMap::new(), body: None }
    }

    /// An HTTP error with one header, such as `retry-after`.
    pub fn status_with_header(
        code: u16,
        name: impl Into<String>,
        value: impl Into<String>,
    ) -> Self {
        Self::Status { code, headers: BTreeMap::from([(name.into(), value.into())]), body: None }
    }
}

/// The body of a [`Fault::Status`]: a string is sent as it is, anything else as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FaultBody {
    /// Such as a proxy's HTML page, or nothing.
    Text(String),
    /// The provider's JSON.
    Json(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Status,
    Disconnect,
    Cut,
    NoEnd,
    Stall,
    Malformed,
    ErrorEvent,
    Slow,
}

/// A fault as it is in a file.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Flat {
    kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after_bytes: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    headers: Option<BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<FaultBody>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    garbage: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delay_ms: Option<u64>,
}

impl Flat {
    const fn empty(kind: Kind) -> Self {
        Self {
            kind,
            after_bytes: None,
            code: None,
            headers: None,
            body: None,
            garbage: None,
            delay_ms: None,
        }
    }

    /// The names of the fields that are there, besides `kind`.
    fn fields(&self) -> impl Iterator<Item = &'static str> {
        [
            ("after_bytes", self.after_bytes.is_some()),
            ("code", self.code.is_some()),
            ("headers", self.headers.is_some()),
            ("body", self.body.is_some()),
            ("garbage", self.garbage.is_some()),
            ("delay_ms", self.delay_ms.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, present)| present.then_some(name))
    }
}

impl TryFrom<Flat> for Fault {
    type Error = String;

    fn try_from(flat: Flat) -> Result<Self, String> {
        let (name, allowed): (_, &[&str]) = match flat.kind {
            Kind::Status => ("status", &["code", "headers", "body"]),
            Kind::Disconnect => ("disconnect", &["after_bytes"]),
            Kind::Cut => ("cut", &["after_bytes"]),
            Kind::NoEnd => ("no_end", &["after_bytes"]),
            Kind::Stall => ("stall", &["after_bytes"]),
            Kind::Malformed => ("malformed", &["after_bytes", "garbage"]),
            Kind::ErrorEvent => ("error_event", &["after_bytes", "body"]),
            Kind::Slow => ("slow", &["delay_ms"]),
        };
        if let Some(field) = flat.fields().find(|field| !allowed.contains(field)) {
            return Err(format!(
                "a fault of kind {name} has no `{field}`, expected {}",
                allowed.join(", ")
            ));
        }
        let Flat { kind, after_bytes, code, headers, body, garbage, delay_ms } = flat;
        match kind {
            Kind::Status => match code {
                Some(code @ 200..=599) => {
                    Ok(Self::Status { code, headers: headers.unwrap_or_default(), body })
                }
                Some(code) => Err(format!("a fault's code is from 200 to 599, not {code}")),
                None => Err("a fault of kind status needs `code`".to_owned()),
            },
            Kind::Disconnect => Ok(Self::Disconnect { after_bytes }),
            Kind::Cut => Ok(Self::Cut { after_bytes }),
            Kind::NoEnd => Ok(Self::NoEnd { after_bytes }),
            Kind::Stall => Ok(Self::Stall { after_bytes }),
            Kind::Malformed => Ok(Self::Malformed { after_bytes, garbage }),
            Kind::ErrorEvent => {
                let body = body.map(|body| match body {
                    FaultBody::Text(text) => Value::String(text),
                    FaultBody::Json(value) => value,
                });
                Ok(Self::ErrorEvent { after_bytes, body })
            }
            Kind::Slow => {
                let delay_ms = delay_ms.ok_or("a fault of kind slow needs `delay_ms`")?;
                Ok(Self::Slow { delay_ms })
            }
        }
    }
}

impl From<Fault> for Flat {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Status { code, headers, body } => Self {
                code: Some(code),
                headers: (!headers.is_empty()).then_some(headers),
                body,
                ..Self::empty(Kind::Status)
            },
            Fault::Disconnect { after_bytes } => {
                Self { after_bytes, ..Self::empty(Kind::Disconnect) }
            }
            Fault::Cut { after_bytes } => Self { after_bytes, ..Self::empty(Kind::Cut) },
            Fault::NoEnd { after_bytes } => Self { after_bytes, ..Self::empty(Kind::NoEnd) },
            Fault::Stall { after_bytes } => Self { after_bytes, ..Self::empty(Kind::Stall) },
            Fault::Malformed { after_bytes, garbage } => {
                Self { after_bytes, garbage, ..Self::empty(Kind::Malformed) }
            }
            Fault::ErrorEvent { after_bytes, body } => Self {
                after_bytes,
                body: body.map(FaultBody::Json),
                ..Self::empty(Kind::ErrorEvent)
            },
            Fault::Slow { delay_ms } => {
                Self { delay_ms: Some(delay_ms), ..Self::empty(Kind::Slow) }
            }
        }
    }
}
