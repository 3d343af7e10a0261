//! [`Refusal`]: why a request gets an error instead of an answer.
//!
//! Knows no API: each dialect says a refusal in its own JSON.

use std::fmt;

/// Why a request gets an error instead of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) kind: RefusalKind,
    /// Where in the body, such as `messages.3.content.0`; empty when it is nowhere in it.
    pub(crate) place: String,
    pub(crate) message: String,
}

/// What kind of refusal it is, which decides the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusalKind {
    InvalidRequest,
    Authentication,
    /// What a missing key is to Google.
    PermissionDenied,
    NotFound,
    MethodNotAllowed,
    TooLarge,
}

impl Refusal {
    /// A request that breaks a rule at a place in its body.
    pub(crate) fn at(place: impl fmt::Display, message: impl Into<String>) -> Self {
        Self {
            kind: RefusalKind::InvalidRequest,
            place: place.to_string(),
            message: message.into(),
        }
    }

    /// A request that is refused as a whole.
    pub(crate) fn whole(kind: RefusalKind, message: impl Into<String>) -> Self {
        Self { kind, place: String::new(), message: message.into() }
    }

    pub(crate) fn status(&self) -> u16 {
        match self.kind {
            RefusalKind::InvalidRequest => 400,
            RefusalKind::Authentication => 401,
            RefusalKind::PermissionDenied => 403,
            RefusalKind::NotFound => 404,
            RefusalKind::MethodNotAllowed => 405,
            RefusalKind::TooLarge => 413,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.place, self.message)
        }
    }
}
