//! [`ThinkingTags`]: the `<think>…</think>` that some models write at the head of their text.
//!
//! Only there: a tag after other text is text, as a model may well write about tags. Both tags may
//! be cut anywhere between deltas. At most one tag's length is held back.

use crate::providers::blocks::Prose;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// How much white space may stand before the tag. More is text, so that little is held back.
const MAX_HEAD: usize = 256;

/// Where in the text the stream is.
#[derive(Debug, Default)]
pub(super) struct ThinkingTags {
    place: Place,
    /// What may be the beginning of a tag.
    held: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Head,
    Inside,
    /// Behind the closing tag, where blank lines belong to nobody.
    Behind,
    Text,
}

impl ThinkingTags {
    /// Sorts the next piece of content into thinking and text.
    pub(super) fn push(&mut self, delta: &str, sink: &mut dyn FnMut(Prose, &str)) {
        if self.place == Place::Text {
            sink(Prose::Text, delta);
            return;
        }
        self.held.push_str(delta);
        if self.place == Place::Head {
            let text = self.held.trim_start();
            if let Some(after) = text.strip_prefix(OPEN) {
                self.held = after.to_owned();
                self.place = Place::Inside;
            } else if OPEN.starts_with(text) && self.held.len() <= MAX_HEAD {
                return;
            } else {
                self.place = Place::Text;
                sink(Prose::Text, &std::mem::take(&mut self.held));
            }
        }
        if self.place == Place::Inside {
            if let Some((thinking, after)) = self.held.split_once(CLOSE) {
                sink(Prose::Thinking, thinking);
                self.held = after.to_owned();
                self.place = Place::Behind;
            } else {
                let keep = partial_tag(&self.held, CLOSE);
                let held = self.held.split_off(self.held.len() - keep);
                sink(Prose::Thinking, &std::mem::replace(&mut self.held, held));
            }
        }
        if self.place == Place::Behind {
            let text = self.held.trim_start();
            if !text.is_empty() {
                sink(Prose::Text, text);
                self.place = Place::Text;
            }
            self.held.clear();
        }
    }

    /// The content is at its end: what was held back is what it is.
    pub(super) fn finish(&mut self, sink: &mut dyn FnMut(Prose, &str)) {
        let held = std::mem::take(&mut self.held);
        match self.place {
            Place::Head | Place::Text => sink(Prose::Text, &held),
            Place::Inside => sink(Prose::Thinking, &held),
            Place::Behind => {}
        }
        self.place = Place::Text;
    }
}

/// How many bytes at the end of `text` may be the beginning of `tag`.
fn partial_tag(text: &str, tag: &str) -> usize {
    (1..tag.len())
        .rev()
        .find(|length| tag.get(..*length).is_some_and(|head| text.ends_with(head)))
        .unwrap_or_default()
}
