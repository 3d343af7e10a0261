//! [`Mutator`]: what may happen to a stream on its way, and what a hostile host may make of one.

use ai::{Api, DecodeOptions, Framing};

use super::random::Random;
use super::stream::{Stream, joined};

/// The most that is done to one stream. Much more leaves nothing of it.
const MOST_MUTATIONS: usize = 4;

/// A body longer than this is not made longer: it would only take time.
const LONGEST: usize = 512 * 1024;

/// Where and what framings and JSON break on.
const TOKENS: &[&[u8]] = &[
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"\r\r",
    b"\0",
    b"\xff",
    b"\xc3",
    b"\xe2\x80\xa8",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\"",
    b"\\",
    b"\\u",
    b"\\ud83d",
    b"\\udd80",
    b"\\u0000",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b": comment\n",
    b"data",
    b"data:",
    b"\ndata: ",
    b"event: error\n",
    b"event:ping\n",
    b"id: 1\n",
    b"data: [DONE]\n\n",
    b"data: {}\n\n",
    b"data: null\n\n",
    b"<html>\n",
    b"{\"error\": {\"code\": 429}}\n",
    b"[{\"error\": {}}]\n",
    b"<think>",
    b"</think>",
    b"</",
    b"1e999",
    b"-",
    b"99999999999999999999999",
];

/// What stands in place of a JSON value that should be another.
const VALUES: &[&[u8]] = &[
    b"null",
    b"true",
    b"false",
    b"0",
    b"-1",
    b"1",
    b"2",
    b"1.5",
    b"1e300",
    b"18446744073709551615",
    b"18446744073709551616",
    b"\"\"",
    b"\"x\"",
    b"\"0\"",
    b"\"\\ud800\"",
    b"\"error\"",
    b"\"stop\"",
    b"\"tool_use\"",
    b"\"text\"",
    b"\"message\"",
    b"\"function_call\"",
    b"{}",
    b"[]",
    b"[null]",
    b"[{}]",
    b"[\"x\"]",
    b"{\"type\":\"x\"}",
    b"{\"message\":\"x\"}",
];

/// What can be done. All of it ends, whatever it is done to.
#[derive(Clone, Copy, Debug)]
enum Mutation {
    Cut,
    DropBytes,
    DoubleBytes,
    MoveBytes,
    FlipBit,
    ReplaceByte,
    Insert,
    DropUnit,
    DoubleUnit,
    SwapUnits,
    RepeatUnit,
    Graft,
    SwapLineEnds,
    SplitLine,
    Retype,
    SwapValues,
    Nest,
}

const MUTATIONS: &[Mutation] = &[
    Mutation::Cut,
    Mutation::DropBytes,
    Mutation::DoubleBytes,
    Mutation::MoveBytes,
    Mutation::FlipBit,
    Mutation::ReplaceByte,
    Mutation::Insert,
    Mutation::DropUnit,
    Mutation::DoubleUnit,
    Mutation::SwapUnits,
    Mutation::RepeatUnit,
    Mutation::Graft,
    Mutation::SwapLineEnds,
    Mutation::SplitLine,
    Mutation::Retype,
    Mutation::Retype,
    Mutation::Retype,
    Mutation::SwapValues,
    Mutation::Nest,
];

/// A mutated body and what it is to be read as.
pub(super) struct Mutated {
    pub(super) name: String,
    pub(super) api: Api,
    pub(super) options: DecodeOptions,
    pub(super) body: Vec<u8>,
}

/// Makes one mutated body.
pub(super) struct Mutator<'a> {
    streams: &'a [Stream],
    pub(super) random: Random,
}

impl<'a> Mutator<'a> {
    pub(super) fn new(streams: &'a [Stream], random: Random) -> Self {
        Self { streams, random }
    }

    /// A stream, mostly as its own API and framing and sometimes as another, with some mutations.
    pub(super) fn mutated(&mut self) -> Mutated {
        let streams = self.streams;
        let stream = self.random.one(streams);
        let mut options = stream.options.clone();
        if self.random.once_in(4) {
            let framing =
                *self.random.one(&[Framing::Sse, Framing::Ndjson, Framing::AwsEventStream]);
            if stream.can_be_in(framing) {
                options.framing = framing;
            }
        }
        options.compat.thinking_tags |= self.random.once_in(4);
        let api = if self.random.once_in(16) { *self.random.one(&Api::ALL) } else { stream.api };
        let mut units = stream.units_in(options.framing);
        for _ in 0..=self.random.below(MOST_MUTATIONS) {
            let mutation = *self.random.one(MUTATIONS);
            self.mutate(&mut units, mutation, options.framing);
        }
        let mut body = joined(&units, options.framing);
        // Damage inside a frame's payload leaves the frame whole; this does not.
        if options.framing == Framing::AwsEventStream && self.random.once_in(4) {
            let mut whole = vec![body];
            let mutation = *self.random.one(MUTATIONS);
            self.mutate(&mut whole, mutation, Framing::Ndjson);
            body = whole.concat();
        }
        Mutated { name: stream.name.clone(), api, options, body }
    }

    fn mutate(&mut self, units: &mut Vec<Vec<u8>>, mutation: Mutation, framing: Framing) {
        if units.is_empty() {
            units.push(Vec::new());
        }
        let at = self.random.below(units.len());
        let other = self.random.below(units.len());
        let is_long = units.iter().map(Vec::len).sum::<usize>() > LONGEST;
        let unit = &mut units[at];
        let from = self.random.below(unit.len() + 1);
        let to = from + self.random.below(unit.len() + 1 - from);
        match mutation {
            Mutation::Cut => {
                unit.truncate(from);
                units.truncate(at + 1);
            }
            Mutation::DropBytes => drop(unit.drain(from..to)),
            Mutation::DoubleBytes => {
                let doubled = unit[from..to].to_vec();
                unit.splice(to..to, doubled);
            }
            Mutation::MoveBytes => {
                let moved: Vec<u8> = unit.drain(from..to).collect();
                let place = self.random.below(units[other].len() + 1);
                units[other].splice(place..place, moved);
            }
            Mutation::FlipBit => {
                if let Some(byte) = unit.get_mut(from) {
                    *byte ^= 1 << self.random.below(8);
                }
            }
            Mutation::ReplaceByte => {
                if let Some(byte) = unit.get_mut(from) {
                    *byte = self.random.next().to_le_bytes()[0];
                }
            }
            Mutation::Insert => {
                let token = self.random.one(TOKENS).to_vec();
                unit.splice(from..from, token);
            }
            Mutation::DropUnit => drop(units.remove(at)),
            Mutation::DoubleUnit => {
                let doubled = unit.clone();
                units.insert(other, doubled);
            }
            Mutation::SwapUnits => units.swap(at, other),
            Mutation::RepeatUnit => {
                let times = if is_long { 1 } else { 1 + self.random.below(40) };
                let repeated = vec![unit.clone(); times];
                units.splice(at..at, repeated);
            }
            Mutation::Graft => {
                let streams = self.streams;
                let tail = self.random.one(streams);
                if !is_long && tail.can_be_in(framing) {
                    let tail = tail.units_in(framing);
                    let from = self.random.below(tail.len());
                    units.truncate(at + 1);
                    units.extend_from_slice(&tail[from..]);
                }
            }
            Mutation::SwapLineEnds => {
                let end: &[u8] = self.random.one(&["\r", "\r\n", "\n", "\n\r"]).as_bytes();
                for unit in units {
                    let lines: Vec<&[u8]> = unit.split(|byte| *byte == b'\n').collect();
                    *unit = lines.join(end);
                }
            }
            Mutation::SplitLine => {
                unit.splice(from..from, b"\ndata: ".iter().copied());
            }
            Mutation::Retype => {
                if let Some(value) = self.value_in(unit) {
                    unit.splice(value, self.random.one(VALUES).iter().copied());
                }
            }
            Mutation::SwapValues => {
                let Some(one) = self.value_in(unit) else { return };
                let value = unit[one].to_vec();
                if let Some(place) = self.value_in(&units[other]) {
                    units[other].splice(place, value);
                }
            }
            Mutation::Nest => {
                let Some(value) = self.value_in(unit) else { return };
                let depth = *self.random.one(&[1, 2, 100, 127, 128, 1000]);
                let (open, close) = *self.random.one(&[("[", "]"), ("{\"a\":", "}")]);
                let inner = unit[value.clone()].to_vec();
                let (head, tail) = (open.repeat(depth), close.repeat(depth));
                let nested = [head.as_bytes(), &inner, tail.as_bytes()].concat();
                unit.splice(value, nested);
            }
        }
    }

    /// Where a JSON value that follows a colon is, one at random.
    fn value_in(&mut self, unit: &[u8]) -> Option<std::ops::Range<usize>> {
        let from = self.random.below(unit.len());
        let colons = |range: &[u8]| range.iter().position(|byte| *byte == b':');
        let colon = match colons(&unit[from.min(unit.len())..]) {
            Some(colon) => from + colon,
            None => colons(unit)?,
        };
        let begin = colon + 1;
        let mut depth = 0_usize;
        let mut in_string = false;
        let mut escaped = false;
        for (at, byte) in unit.iter().enumerate().skip(begin) {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_string => escaped = true,
                b'"' => in_string = !in_string,
                _ if in_string => {}
                b'{' | b'[' => depth += 1,
                b'}' | b']' | b',' | b'\n' if depth == 0 => return Some(begin..at),
                b'}' | b']' => depth -= 1,
                _ => {}
            }
        }
        Some(begin..unit.len())
    }
}
