//! The grammar that every stream of events follows, as a checker (SPEC M1).

use std::collections::{BTreeMap, BTreeSet};

use ai::StreamEvent;

/// What an open block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Call,
}

/// Checks a whole stream.
///
/// # Errors
/// What breaks the grammar, and at which event.
pub fn check(events: &[StreamEvent]) -> Result<(), String> {
    let mut checker = Checker::default();
    for (at, event) in events.iter().enumerate() {
        checker.event(event).map_err(|fault| format!("event {at}: {fault}: {event:?}"))?;
    }
    if !checker.ended {
        return Err("no end event".to_owned());
    }
    Ok(())
}

#[derive(Default)]
struct Checker {
    started: bool,
    ended: bool,
    open: BTreeMap<usize, (Kind, usize)>,
    used: BTreeSet<usize>,
    ids: BTreeSet<String>,
}

impl Checker {
    fn event(&mut self, event: &StreamEvent) -> Result<(), &'static str> {
        if self.ended {
            return Err("something after the end");
        }
        match event {
            StreamEvent::Retry { .. } if self.started => Err("a retry after the start"),
            StreamEvent::Retry { .. } => Ok(()),
            StreamEvent::Start { .. } if self.started => Err("a second start"),
            StreamEvent::Start { .. } => {
                self.started = true;
                Ok(())
            }
            _ if !self.started => Err("something before the start"),
            StreamEvent::TextStart { index } => self.open(*index, Kind::Text),
            StreamEvent::ThinkingStart { index } => self.open(*index, Kind::Thinking),
            StreamEvent::ToolcallStart { index, id, .. } => {
                if id.is_empty() || !self.ids.insert(id.clone()) {
                    return Err("an id that is not unique");
                }
                self.open(*index, Kind::Call)
            }
            StreamEvent::TextDelta { index, delta } => self.grow(*index, Kind::Text, delta),
            StreamEvent::ThinkingDelta { index, delta } => self.grow(*index, Kind::Thinking, delta),
            StreamEvent::ToolcallDelta { index, delta } => self.grow(*index, Kind::Call, delta),
            StreamEvent::TextEnd { index } => match self.close(*index, Kind::Text)? {
                0 => Err("an empty text block"),
                _ => Ok(()),
            },
            StreamEvent::ThinkingEnd { index, signature, .. } => {
                match (self.close(*index, Kind::Thinking)?, signature) {
                    (0, None) => Err("an empty thinking block"),
                    _ => Ok(()),
                }
            }
            StreamEvent::ToolcallEnd { index, call } => {
                self.close(*index, Kind::Call)?;
                if self.ids.contains(&call.id) { Ok(()) } else { Err("another id at the end") }
            }
            StreamEvent::Opaque { index, .. } => {
                if self.used.insert(*index) {
                    Ok(())
                } else {
                    Err("an index used twice")
                }
            }
            StreamEvent::Done { .. } | StreamEvent::Error { .. } => {
                self.ended = true;
                if self.open.is_empty() { Ok(()) } else { Err("an end with open blocks") }
            }
            _ => Err("an event that the grammar does not have"),
        }
    }

    fn open(&mut self, index: usize, kind: Kind) -> Result<(), &'static str> {
        if !self.used.insert(index) {
            return Err("an index used twice");
        }
        self.open.insert(index, (kind, 0));
        Ok(())
    }

    fn grow(&mut self, index: usize, kind: Kind, delta: &str) -> Result<(), &'static str> {
        if delta.is_empty() {
            return Err("an empty delta");
        }
        match self.open.get_mut(&index) {
            Some((open, grown)) if *open == kind => {
                *grown += delta.len();
                Ok(())
            }
            Some(_) | None => Err("a delta for a block that is not open"),
        }
    }

    fn close(&mut self, index: usize, kind: Kind) -> Result<usize, &'static str> {
        match self.open.remove(&index) {
            Some((open, grown)) if open == kind => Ok(grown),
            Some(_) | None => Err("an end for a block that is not open"),
        }
    }
}
