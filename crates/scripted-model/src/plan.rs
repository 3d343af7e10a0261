//! [`Plan`]: what is done for one answer, decided before anything is sent.
//!
//! Lays a turn's delay, gate and fault over its rendered body. Pure: no clock, no socket. Performing a
//! plan is [`crate::body`]'s.
//!
//! **Invariant:** a frame ends where an event ends, unless a fault or a gate cuts the event.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

use crate::dialect::{Answer, Dialect};
use crate::rendered::{EventMark, Rendered};
use crate::script::{Fault, FaultBody, Turn};

/// How much is handed to the connection at once, in bytes: large answers cost few writes, and a gate
/// or a slow client never waits for more than this.
const FRAME_BYTES: usize = 16 * 1024;

/// What comes into a stream that is garbled, unless the script says: neither JSON nor UTF-8.
const GARBAGE: &[u8] = b"data: {\"type\": \xff\xfe]\n\n";

/// What is done for one answer.
#[derive(Debug, PartialEq)]
pub(crate) struct Plan {
    /// Waited for before the head.
    pub(crate) before: Vec<Wait>,
    pub(crate) outcome: Outcome,
}

/// What comes after the waiting.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    /// No head is sent.
    Broken(Break),
    /// A head is sent, then the steps, then the end.
    Answer { head: Head, steps: VecDeque<Step>, end: End },
}

/// The head of an answer.
#[derive(Debug, PartialEq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    /// Later ones replace earlier ones of the same name.
    pub(crate) headers: Vec<(String, String)>,
    /// The body's length where it is known and said; otherwise the body is chunked.
    pub(crate) length: Option<usize>,
}

/// Something that is waited for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Wait {
    Delay(Duration),
    Gate(String),
}

/// One step of a body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Send(Bytes),
    Wait(Wait),
}

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Complete,
    Broken(Break),
}

/// How a connection fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Break {
    /// Closed in order.
    Close,
    /// Reset.
    Reset,
    /// Open and silent.
    Stall,
}

impl Plan {
    /// Decides what is done for an answer.
    pub(crate) fn new(dialect: Dialect, answer: &Answer<'_>, request_id: &str) -> Self {
        let turn = answer.turn;
        let gate_is_inside = turn.gate_at_delta.is_some() || turn.gate_after_bytes.is_some();
        let delay = turn.delay_ms.map(|ms| Wait::Delay(Duration::from_millis(ms)));
        let gate = turn.gate.clone().filter(|_| !gate_is_inside).map(Wait::Gate);
        let before = delay.into_iter().chain(gate).collect();
        Self { before, outcome: outcome(dialect, answer, request_id) }
    }
}

fn outcome(dialect: Dialect, answer: &Answer<'_>, request_id: &str) -> Outcome {
    let stream = || Head {
        status: 200,
        headers: vec![
            ("content-type".to_owned(), "text/event-stream; charset=utf-8".to_owned()),
            ("cache-control".to_owned(), "no-cache".to_owned()),
        ],
        length: None,
    };
    let play = |overlay: Overlay| {
        let rendered = dialect.render(answer);
        let (steps, end) = overlay.apply(rendered, answer.turn);
        Outcome::Answer { head: stream(), steps, end }
    };
    let broken = |how: Break, after_bytes: &Option<usize>| match after_bytes {
        None => Outcome::Broken(how),
        Some(bytes) => play(Overlay { cut: Some((*bytes, End::Broken(how))), ..Overlay::none() }),
    };
    match &answer.turn.fault {
        None => play(Overlay::none()),
        Some(Fault::Status { code, headers, body }) => {
            let (kind, body) = match body {
                Some(FaultBody::Text(text)) => ("text/plain; charset=utf-8", text.clone()),
                Some(FaultBody::Json(json)) => ("application/json", json.to_string()),
                None => ("application/json", dialect.status_body(*code, request_id).to_string()),
            };
            let mut all = vec![("content-type".to_owned(), kind.to_owned())];
            all.extend(headers.iter().map(|(name, value)| (name.clone(), value.clone())));
            Outcome::Answer {
                head: Head { status: *code, headers: all, length: Some(body.len()) },
                steps: send(Bytes::from(body)),
                end: End::Complete,
            }
        }
        Some(Fault::Disconnect { after_bytes }) => broken(Break::Reset, after_bytes),
        Some(Fault::Cut { after_bytes }) => broken(Break::Close, after_bytes),
        Some(Fault::Stall { after_bytes }) => broken(Break::Stall, after_bytes),
        Some(Fault::NoEnd { after_bytes }) => {
            play(Overlay { no_end: Some(after_bytes.unwrap_or(usize::MAX)), ..Overlay::none() })
        }
        Some(Fault::Malformed { after_bytes, garbage }) => {
            let bytes = match garbage {
                Some(text) => Bytes::from(text.clone()),
                None => Bytes::from_static(GARBAGE),
            };
            play(Overlay { insert: Some((after_bytes.unwrap_or(0), bytes)), ..Overlay::none() })
        }
        Some(Fault::ErrorEvent { after_bytes, body }) => {
            let event = Bytes::from(dialect.error_event(body.as_ref()));
            let place = after_bytes.unwrap_or(0);
            play(Overlay { last_event: Some((place, event)), ..Overlay::none() })
        }
        Some(Fault::Slow { delay_ms }) => play(Overlay {
            before_deltas: Some(Duration::from_millis(*delay_ms)),
            ..Overlay::none()
        }),
    }
}

/// The steps of a body that is sent at once. An empty one has none.
pub(crate) fn send(body: Bytes) -> VecDeque<Step> {
    let step = (!body.is_empty()).then_some(Step::Send(body));
    step.into_iter().collect()
}

/// What a fault changes in a body.
struct Overlay {
    /// The body stops here, in this way.
    cut: Option<(usize, End)>,
    /// The body ends in order here, at the latest before its end marker.
    no_end: Option<usize>,
    /// Put in here, between two bytes.
    insert: Option<(usize, Bytes)>,
    /// Put in at the first end of an event from here on; nothing follows it.
    last_event: Option<(usize, Bytes)>,
    /// Silence before each delta.
    before_deltas: Option<Duration>,
}

impl Overlay {
    const fn none() -> Self {
        Self { cut: None, no_end: None, insert: None, last_event: None, before_deltas: None }
    }

    fn apply(self, rendered: Rendered, turn: &Turn) -> (VecDeque<Step>, End) {
        let Rendered { bytes, events, end_marker, .. } = rendered;
        let mut limit = bytes.len();
        let mut end = End::Complete;
        let mut interruptions: Vec<(usize, Step)> = Vec::new();

        if let Some((place, how)) = self.cut {
            limit = limit.min(place);
            end = how;
        }
        if let Some(place) = self.no_end {
            limit = place.min(end_marker);
        }
        if let Some((place, event)) = self.last_event {
            // Never behind the end marker, where it would be an event after the end.
            let boundary = events.iter().map(|event| event.start).find(|start| *start >= place);
            limit = boundary.unwrap_or(end_marker).min(end_marker);
            interruptions.push((limit, Step::Send(event)));
        }
        if let Some(delay) = self.before_deltas {
            let deltas = events.iter().filter(|event| event.is_delta);
            interruptions.extend(deltas.map(|event| (event.start, Step::Wait(Wait::Delay(delay)))));
        }
        if let Some((place, garbage)) = self.insert {
            interruptions.extend(send(garbage).into_iter().map(|step| (place.min(limit), step)));
        }
        if let Some(place) = gate_place(turn, &events, bytes.len())
            && let Some(name) = &turn.gate
        {
            interruptions.push((place.min(limit), Step::Wait(Wait::Gate(name.clone()))));
        }
        interruptions.retain(|(place, _)| *place <= limit);
        interruptions.sort_by_key(|(place, _)| *place);
        (lay_out(&Bytes::from(bytes), &events, limit, interruptions), end)
    }
}

/// Where in the body the turn's gate is, if it is there at all.
fn gate_place(turn: &Turn, events: &[EventMark], length: usize) -> Option<usize> {
    if let Some(deltas) = turn.gate_at_delta {
        let mut starts = events.iter().filter(|event| event.is_delta).map(|event| event.start);
        return Some(starts.nth(deltas).unwrap_or(length));
    }
    turn.gate_after_bytes
}

/// The body up to `limit` in frames, with the interruptions, which are in order, in their places.
fn lay_out(
    bytes: &Bytes,
    events: &[EventMark],
    limit: usize,
    interruptions: Vec<(usize, Step)>,
) -> VecDeque<Step> {
    let mut steps = VecDeque::new();
    let mut sent = 0;
    let mut next_event = 0;
    let mut send_until = |steps: &mut VecDeque<Step>, place: usize| {
        while sent < place {
            let mut end = place;
            // As many whole events as a frame holds; the next one when it alone is larger.
            let mut fitting = None;
            while let Some(event) = events.get(next_event)
                && event.end <= place
                && (fitting.is_none() || event.end - sent <= FRAME_BYTES)
            {
                fitting = Some(event.end);
                next_event += 1;
            }
            if let Some(fitting) = fitting {
                end = fitting;
            }
            if end > sent {
                steps.push_back(Step::Send(bytes.slice(sent..end)));
                sent = end;
            }
        }
    };
    for (place, step) in interruptions {
        send_until(&mut steps, place);
        steps.push_back(step);
    }
    send_until(&mut steps, limit);
    steps
}
