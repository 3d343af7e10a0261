//! [`RecordedRequest`]: a request as it arrived, and what became of it.

use std::fmt;
use std::sync::Arc;

use ai::Api;
use serde_json::Value;

use crate::conversation::Conversation;
use crate::target::Target;

/// A request for an answer, as it arrived, and what became of it.
#[derive(Clone)]
#[non_exhaustive]
pub struct RecordedRequest {
    /// Its place in the order of arrival, from 0.
    pub index: usize,
    /// The API that it speaks.
    pub api: Api,
    /// Its headers in their order, the names in lower case.
    pub headers: Arc<[(String, String)]>,
    /// Its body; null when it is not JSON, or when it was let go because later ones needed the room.
    pub body: Arc<Value>,
    /// Why it was refused, if it was.
    pub refusal: Option<String>,
    /// How far its answer has come.
    pub progress: Progress,
    pub(crate) target: Target,
    pub(crate) bytes: usize,
}

/// How far an answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Progress {
    /// The request is being looked at.
    Arrived,
    /// The request was answered with an error, because of what it is.
    Refused,
    /// The answer waits or is under way.
    Answering,
    /// The answer was handed over whole.
    Answered,
    /// The script's fault ended the connection.
    Broken,
    /// The client left before the answer was whole.
    Left,
}

impl RecordedRequest {
    /// Whether the request passed all checks.
    pub fn is_accepted(&self) -> bool {
        match self.progress {
            Progress::Arrived | Progress::Refused => false,
            Progress::Answering | Progress::Answered | Progress::Broken | Progress::Left => true,
        }
    }

    /// A header's value; the name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        find_header(&self.headers, name)
    }

    /// The request's content, the same for all APIs. Read anew from the body each time.
    pub fn conversation(&self) -> Conversation {
        self.target.read(&self.body)
    }
}

pub(crate) fn find_header<'h>(headers: &'h [(String, String)], name: &str) -> Option<&'h str> {
    headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
}

/// Headers that carry keys: recorded, so that a test can compare them, but never printed.
const SECRET_HEADERS: [&str; 4] = ["authorization", "x-api-key", "x-goog-api-key", "api-key"];

impl fmt::Debug for RecordedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<(&str, &str)> = self
            .headers
            .iter()
            .map(|(name, value)| {
                let is_secret = SECRET_HEADERS.contains(&name.as_str());
                (name.as_str(), if is_secret { "…" } else { value.as_str() })
            })
            .collect();
        f.debug_struct("RecordedRequest")
            .field("index", &self.index)
            .field("api", &self.api)
            .field("headers", &headers)
            .field("body", &self.body)
            .field("refusal", &self.refusal)
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}

/// Something that a client did wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The request's index; absent when it was none for an answer, such as one to an unknown path.
    pub request: Option<usize>,
    /// The status that it got.
    pub status: u16,
    /// What it was told.
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.request {
            Some(index) => write!(f, "request {index}: {} {}", self.status, self.reason),
            None => write!(f, "{} {}", self.status, self.reason),
        }
    }
}
