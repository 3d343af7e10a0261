//! What can go wrong between a request and its answer, typed.
//!
//! Nothing above this crate looks into an error's text: [`ErrorKind`] is what decisions are made on,
//! and the provider's own words are carried along for people.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A failed request or a failed stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{}: {message}", .kind.as_str())]
pub struct ProviderError {
    /// What kind of failure it is.
    pub kind: ErrorKind,
    /// The provider's message, or ours where it sent none. Never holds a key.
    pub message: String,
    /// The HTTP status, where there was an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How long the provider asks to be left alone.
    #[serde(
        default,
        rename = "retry_after_ms",
        skip_serializing_if = "Option::is_none",
        with = "milliseconds"
    )]
    pub retry_after: Option<Duration>,
    /// The provider's name for this request, for its support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Whether the provider says that asking again helps, against what the kind suggests. It is
    /// for the retries of this very request, so it is not written down.
    #[serde(skip)]
    pub should_retry: Option<bool>,
}

impl ProviderError {
    /// An error of which only the kind and the message are known.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: None,
            retry_after: None,
            request_id: None,
            should_retry: None,
        }
    }

    /// Whether the same request may succeed a little later: as the provider says, else by the kind.
    pub fn is_retryable(&self) -> bool {
        self.should_retry.unwrap_or_else(|| self.kind.is_retryable())
    }
}

/// The categories of failure (SPEC M12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The key is missing, wrong or expired.
    Auth,
    /// The key is good but not for this.
    Permission,
    /// Too many requests or tokens for now.
    RateLimit,
    /// The provider has no capacity for now.
    Overloaded,
    /// The account has no credit left; waiting does not help.
    Quota,
    /// The request does not fit the model's window.
    ContextOverflow,
    /// The provider does not accept the request as it is.
    InvalidRequest,
    /// There is no such model or address.
    NotFound,
    /// A filter refused the input or the output.
    ContentFilter,
    /// Nothing came for too long.
    Timeout,
    /// The connection could not be made or broke.
    Network,
    /// The stream ended without its end marker.
    TruncatedStream,
    /// The stream is not what its API promises.
    MalformedStream,
    /// The provider failed.
    Server,
    /// The request was cancelled.
    Aborted,
    /// No provider can serve the request.
    NoProvider,
}

impl ErrorKind {
    /// The kind as it stands in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Permission => "permission",
            Self::RateLimit => "rate_limit",
            Self::Overloaded => "overloaded",
            Self::Quota => "quota",
            Self::ContextOverflow => "context_overflow",
            Self::InvalidRequest => "invalid_request",
            Self::NotFound => "not_found",
            Self::ContentFilter => "content_filter",
            Self::Timeout => "timeout",
            Self::Network => "network",
            Self::TruncatedStream => "truncated_stream",
            Self::MalformedStream => "malformed_stream",
            Self::Server => "server",
            Self::Aborted => "aborted",
            Self::NoProvider => "no_provider",
        }
    }

    /// Whether the same request may succeed a little later.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::RateLimit
            | Self::Overloaded
            | Self::Timeout
            | Self::Network
            | Self::TruncatedStream
            | Self::Server => true,
            Self::Auth
            | Self::Permission
            | Self::Quota
            | Self::ContextOverflow
            | Self::InvalidRequest
            | Self::NotFound
            | Self::ContentFilter
            | Self::MalformedStream
            | Self::Aborted
            | Self::NoProvider => false,
        }
    }
}

mod milliseconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value
            .map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
            .serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_millis))
    }
}
