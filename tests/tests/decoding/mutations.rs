//! Streams mutated at random, and what holds of any bytes at all (SPEC M1, M3, M4).
//!
//! A case is a number: it chooses a stream, what is done to it and how the bytes are cut, so every
//! failure can be had again. A failing body is made small before it is shown. The streams are the
//! recorded ones and those of this suite, which are enough where nothing is recorded.
//!
//! `MUTATIONS` says how many cases are tried (`cargo xtask mutate` tries a million, in release);
//! `MUTATION` names one case to be tried alone.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use ai::{
    Api, Assembler, AssistantMessage, ContentBlock, DecodeOptions, ErrorKind, MessageId,
    ProviderError, StreamEvent, Timestamp,
};
use tests::decoded::{events as decode, message as assembled};
use tests::grammar;

use self::heap::Heap;
use self::mutation::Mutator;
use self::random::Random;
use self::stream::Stream;

mod heap;
mod mutation;
mod random;
mod stream;

/// Cases of an ordinary run: some seconds of a debug build.
const CASES: u64 = 2_000;

/// The most heap that decoding and what came of it may take, for each byte of the body. The worst that
/// JSON can do is an object with one empty name in an object with one empty name: five bytes of text
/// become a map with room for four entries, some 400 bytes.
const HEAP_PER_BYTE: usize = 128;

/// Heap that does not depend on the body: buffers' first sizes, an error's words.
const HEAP_BASE: usize = 64 * 1024;

/// The most bytes of events, written as JSON, for each byte of the body. A call's arguments are told
/// twice, parsed and as they came; a damaged byte becomes three; each delta has its event around it. A
/// million cases took 2 at most.
const OUTPUT_PER_BYTE: usize = 4;

/// Output that does not depend on the body: `start` and the end.
const OUTPUT_BASE: usize = 4 * 1024;

/// No case takes a hundredth of this. One that does is in a loop.
const STALL: Duration = Duration::from_secs(60);

/// Results that wait to be counted. Workers that are further ahead wait too.
const UNREAD: usize = 1024;

/// Attempts to make a failing body smaller.
const SHRINKING_STEPS: usize = 20_000;

/// What a case showed.
struct Seen {
    end: &'static str,
    bytes: usize,
    events: usize,
    /// Heap and output, each over what a byte of the body may cost, in thousandths.
    heap: usize,
    output: usize,
}

#[derive(Default)]
struct Totals {
    cases: u64,
    bytes: usize,
    events: usize,
    ends: BTreeMap<&'static str, u64>,
    heap: usize,
    output: usize,
}

impl Totals {
    fn add(&mut self, seen: &Seen) {
        self.cases += 1;
        self.bytes += seen.bytes;
        self.events += seen.events;
        *self.ends.entry(seen.end).or_default() += 1;
        self.heap = self.heap.max(seen.heap);
        self.output = self.output.max(seen.output);
    }
}

/// SPEC M1, M3, M4: any bytes at all give a stream of the grammar with one end, the same however they
/// come, in bounded memory.
#[test]
fn mutated_streams_follow_the_grammar() {
    let streams = stream::all();
    let number = |name: &str| {
        std::env::var(name).ok().map(|value| value.parse().expect("a number of cases"))
    };
    let (first, last) = match (number("MUTATION"), number("MUTATIONS")) {
        (Some(case), _) => (case, case + 1),
        (None, cases) => (0, cases.unwrap_or(CASES)),
    };
    let next = AtomicU64::new(first);
    let totals = try_cases(&streams, &next, last);
    println!(
        "{} cases of {} streams, {} MB, {} events",
        totals.cases,
        streams.len(),
        totals.bytes / 1_000_000,
        totals.events
    );
    println!(
        "largest for each byte of a body: {} bytes of heap, {}.{} of output",
        totals.heap / 1000,
        totals.output / 1000,
        totals.output % 1000 / 100
    );
    println!("ends: {:?}", totals.ends);
}

/// Tries the cases on every core.
///
/// # Panics
/// With the smallest body found, when a case fails; with the cases at hand, when none ends any more.
fn try_cases(streams: &[Stream], next: &AtomicU64, last: u64) -> Totals {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let at_hand: Vec<AtomicU64> = (0..workers).map(|_| AtomicU64::new(u64::MAX)).collect();
    let (results, seen) = mpsc::sync_channel(UNREAD);
    let mut totals = Totals::default();
    // A loop is reported by a panic, and a scope would wait for the thread that loops.
    std::thread::scope(|scope| {
        for at_hand in &at_hand {
            let results = results.clone();
            scope.spawn(move || {
                loop {
                    let case = next.fetch_add(1, Ordering::Relaxed);
                    at_hand.store(case, Ordering::Relaxed);
                    if case >= last || results.send(try_case(streams, case)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(results);
        // Gone with this closure, also when it panics, so that nobody waits to be read.
        let seen = seen;
        loop {
            match seen.recv_timeout(STALL) {
                Ok(Ok(seen)) => totals.add(&seen),
                Ok(Err(failure)) => {
                    next.store(last, Ordering::Relaxed);
                    panic!("{failure}");
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    eprintln!("cases {at_hand:?} do not end");
                    std::process::abort();
                }
            }
        }
    });
    totals
}

fn try_case(streams: &[Stream], case: u64) -> Result<Seen, String> {
    let mut mutator = Mutator::new(streams, Random::new(case));
    let mutated = mutator.mutated();
    let cuts = mutator.random.next();
    check(mutated.api, &mutated.options, &mutated.body, cuts).map_err(|fault| {
        let (body, fault) = shrunk(&mutated, cuts, fault);
        format!(
            "case {case}, from {}, as {} in {:?}: {fault}\nthe smallest body, {} bytes: b\"{}\"",
            mutated.name,
            mutated.api,
            mutated.options.framing,
            body.len(),
            body.escape_ascii()
        )
    })
}

/// Everything that holds of a body.
fn check(api: Api, options: &DecodeOptions, body: &[u8], cuts: u64) -> Result<Seen, String> {
    let checked = catch_unwind(AssertUnwindSafe(|| {
        let heap = Heap::watch();
        let whole = decode(api, options, [body]);
        let heap = heap.peak();
        grammar::check(&whole)?;
        if heap > HEAP_PER_BYTE * body.len() + HEAP_BASE {
            return Err(format!("{heap} bytes of heap for {} bytes", body.len()));
        }
        let output = serde_json::to_vec(&whole).expect("JSON").len();
        if output > OUTPUT_PER_BYTE * body.len() + OUTPUT_BASE {
            return Err(format!("{output} bytes of events for {} bytes", body.len()));
        }
        let message = assembled(&whole);
        let expected = told(&whole);
        if message != expected {
            return Err(format!("assembled {message:?}\nwhere the events tell {expected:?}"));
        }
        let pieces = Random::new(cuts).pieces(body);
        if decode(api, options, pieces.iter().copied()) != whole {
            let cuts: Vec<usize> = pieces.iter().map(|piece| piece.len()).collect();
            return Err(format!("other events in pieces of {cuts:?}"));
        }
        let over = |bytes: usize, base| 1000 * bytes.saturating_sub(base) / body.len().max(1);
        Ok(Seen {
            end: match &message.error {
                Some(error) => error.kind.as_str(),
                None => "done",
            },
            bytes: body.len(),
            events: whole.len(),
            heap: over(heap, HEAP_BASE),
            output: over(output, OUTPUT_BASE),
        })
    }));
    checked.unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().cloned();
        let words = words.or_else(|| panic.downcast_ref::<&str>().map(|words| (*words).to_owned()));
        Err(format!("a panic: {}", words.unwrap_or_default()))
    })
}

/// The message that these events tell of, put together without the assembler.
fn told(events: &[StreamEvent]) -> AssistantMessage {
    let mut message = Assembler::new(MessageId::from("m"), Timestamp(0)).finish();
    let mut prose: BTreeMap<usize, String> = BTreeMap::new();
    let mut blocks: BTreeMap<usize, ContentBlock> = BTreeMap::new();
    for event in events {
        match event {
            StreamEvent::Start { provider, api, model } => {
                message.provider.clone_from(provider);
                message.api.clone_from(api);
                message.model.clone_from(model);
            }
            StreamEvent::TextDelta { index, delta }
            | StreamEvent::ThinkingDelta { index, delta } => {
                prose.entry(*index).or_default().push_str(delta);
            }
            StreamEvent::TextEnd { index } => {
                let text = prose.remove(index).unwrap_or_default();
                blocks.insert(*index, ContentBlock::Text { text });
            }
            StreamEvent::ThinkingEnd { index, signature, redacted } => {
                let text = prose.remove(index).unwrap_or_default();
                let (signature, redacted) = (signature.clone(), *redacted);
                blocks.insert(*index, ContentBlock::Thinking { text, signature, redacted });
            }
            StreamEvent::ToolcallEnd { index, call } => {
                blocks.insert(*index, ContentBlock::ToolCall(call.clone()));
            }
            StreamEvent::Opaque { index, api, data } => {
                let (api, data) = (api.clone(), data.clone());
                blocks.insert(*index, ContentBlock::Opaque { api, data });
            }
            StreamEvent::Done { stop_reason, stop_raw, usage, violation } => {
                message.error = None;
                message.stop_reason = *stop_reason;
                message.stop_raw.clone_from(stop_raw);
                message.usage = *usage;
                message.violation.clone_from(violation);
            }
            StreamEvent::Error { error, stop_raw, usage } => {
                message.error = Some(error.clone());
                message.stop_raw.clone_from(stop_raw);
                message.usage = *usage;
            }
            _ => {}
        }
    }
    message.content = blocks.into_values().collect();
    message
}

/// A smaller body that still fails, and how: pieces are left out, large ones first, as long as that
/// is so.
fn shrunk(mutated: &mutation::Mutated, cuts: u64, fault: String) -> (Vec<u8>, String) {
    let (mut body, mut fault) = (mutated.body.clone(), fault);
    let mut size = body.len() / 2;
    let mut steps = 0;
    while size > 0 {
        let mut at = 0;
        let before = body.len();
        while at < body.len() && steps < SHRINKING_STEPS {
            steps += 1;
            let mut smaller = body.clone();
            smaller.drain(at..(at + size).min(body.len()));
            match check(mutated.api, &mutated.options, &smaller, cuts) {
                Ok(_) => at += size,
                Err(found) => (body, fault) = (smaller, found),
            }
        }
        if body.len() == before || size > 1 {
            size /= 2;
        }
    }
    (body, fault)
}

/// The checks above can fail: each refuses what it is there for.
#[test]
fn what_breaks_the_rules_is_seen() {
    let end = || StreamEvent::failed(ProviderError::new(ErrorKind::Server, "gone"));
    let text = |delta: &str| StreamEvent::TextDelta { index: 0, delta: delta.to_owned() };
    assert!(grammar::check(&[end(), end()]).is_err());
    assert_ne!(told(&[text("a"), end()]), assembled(&[text("a"), end()]), "no end of the block");
    let heap = Heap::watch();
    drop(vec![0_u8; 1000]);
    assert_eq!(heap.peak(), 1000);
}
