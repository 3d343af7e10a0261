//! How long a provider asks to be left alone, in all the forms in which hosts say it (SPEC M13).
//!
//! Headers in seconds, milliseconds and dates, resets of single limits as durations and as points in
//! time, Google's `RetryInfo`, and plain sentences. What cannot be read is no hint: the caller's
//! back-off stands in.

use std::time::Duration;

use serde_json::Value;

use crate::error::ErrorKind;
use crate::message::Timestamp;

/// More than this is as much as for ever: nobody waits for it, and nobody asks sooner.
const LONGEST: Duration = Duration::from_secs(31 * 24 * 3600);

/// The hint in an error answer for which waiting helps. `delays` are those that its body names.
///
/// What is said about retrying wins over what is said about limits: a limit's reset may be far
/// beyond the moment from which a small request passes.
pub(crate) fn find(
    now: Timestamp,
    kind: ErrorKind,
    headers: &[(String, String)],
    delays: &[Duration],
    message: &str,
) -> Option<Duration> {
    let header = |name: &str| {
        headers.iter().find(|(candidate, _)| candidate == name).map(|(_, value)| value.as_str())
    };
    header("retry-after-ms")
        .and_then(milliseconds)
        .or_else(|| header("retry-after").and_then(|value| seconds_or_date(now, value)))
        .or_else(|| delays.first().copied())
        .or_else(|| in_sentence(message))
        .or_else(|| match kind {
            ErrorKind::RateLimit => exhausted_limits(now, headers),
            _ => None,
        })
}

/// Seconds as a wait. One that is too long to be held is still a wait, and no back-off is sooner.
fn bounded(seconds: f64) -> Option<Duration> {
    if !seconds.is_finite() || seconds < 0.0 {
        return None;
    }
    Some(Duration::try_from_secs_f64(seconds).map_or(LONGEST, |duration| duration.min(LONGEST)))
}

fn milliseconds(value: &str) -> Option<Duration> {
    bounded(value.trim().parse::<f64>().ok()? / 1000.0)
}

fn seconds_or_date(now: Timestamp, value: &str) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return bounded(seconds);
    }
    duration(value).or_else(|| {
        let moment = jiff::fmt::rfc2822::DateTimeParser::new()
            .parse_timestamp(value)
            .or_else(|_| value.parse::<jiff::Timestamp>())
            .ok()?;
        until(now, moment)
    })
}

/// From now until `moment`; nothing for a moment that has passed.
fn until(now: Timestamp, moment: jiff::Timestamp) -> Option<Duration> {
    let moment = u64::try_from(moment.as_millisecond()).ok()?;
    let wait = moment.checked_sub(now.0).filter(|wait| *wait > 0)?;
    Some(Duration::from_millis(wait).min(LONGEST))
}

/// A wait that a body names in a field of its own: a number of `unit`s, or a duration.
pub(crate) fn of_field(value: &Value, unit: Duration) -> Option<Duration> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => match text.trim().parse::<f64>() {
            Ok(number) => Some(number),
            Err(_) => return duration(text),
        },
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    bounded(number? * unit.as_secs_f64())
}

/// A duration as Go prints it: `7.66s`, `2m59.56s`, `120ms`, `1h0m0s`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let (duration, rest) = leading_duration(text.trim())?;
    rest.is_empty().then_some(duration)
}

/// The duration that `text` begins with, and what follows it. A unit is needed.
fn leading_duration(text: &str) -> Option<(Duration, &str)> {
    let mut rest = text;
    let mut seconds = 0.0;
    let mut found = false;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let Ok(number) = number.parse::<f64>() else { break };
        // Longer units first: `ms` is not `m`.
        let Some((unit, factor)) = [
            ("ms", 0.001),
            ("µs", 1e-6),
            ("us", 1e-6),
            ("ns", 1e-9),
            ("h", 3600.0),
            ("m", 60.0),
            ("s", 1.0),
        ]
        .into_iter()
        .find(|(unit, _)| after.starts_with(unit)) else {
            break;
        };
        seconds += number * factor;
        found = true;
        rest = after.strip_prefix(unit).unwrap_or_default();
    }
    if !found {
        return None;
    }
    Some((bounded(seconds)?, rest))
}

/// What stands before a wait that is said in words. All lower case.
const WAIT_PHRASES: &[&str] = &[
    "try again in ",
    "try again after ",
    "retry in ",
    "retry after ",
    "retry again in ",
    "retry your request after ",
    "available in ",
    "please wait ",
    "wait for ",
    "reset after ",
    "resets in ",
    "reset in ",
];

/// A wait that is only said in words: `Please try again in 1m0.36s.`, `retry after 20 seconds`.
fn in_sentence(message: &str) -> Option<Duration> {
    let lower = message.to_ascii_lowercase();
    WAIT_PHRASES.iter().find_map(|phrase| {
        let rest = lower.get(lower.find(phrase)? + phrase.len()..)?;
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let word = after.strip_prefix(' ').unwrap_or(after);
        let factor = [("milli", 0.001), ("sec", 1.0), ("min", 60.0), ("hour", 3600.0)]
            .into_iter()
            .find(|(unit, _)| word.starts_with(unit))
            .map(|(_, factor)| factor);
        match factor {
            Some(factor) => bounded(number.parse::<f64>().ok()? * factor),
            None => leading_duration(rest).map(|(duration, _)| duration),
        }
    })
}

/// When the limits that are used up are free again: the latest of them.
fn exhausted_limits(now: Timestamp, headers: &[(String, String)]) -> Option<Duration> {
    let remaining = |name: &str| {
        headers
            .iter()
            .find(|(candidate, _)| candidate == name)
            .and_then(|(_, value)| value.trim().parse::<f64>().ok())
    };
    headers
        .iter()
        .filter_map(|(name, value)| {
            let counter = if let Some(limit) = name.strip_prefix("x-ratelimit-reset") {
                format!("x-ratelimit-remaining{limit}")
            } else if name == "ratelimit-reset" {
                "ratelimit-remaining".to_owned()
            } else {
                let limit = name.strip_prefix("anthropic-ratelimit-")?.strip_suffix("-reset")?;
                format!("anthropic-ratelimit-{limit}-remaining")
            };
            if remaining(&counter).is_some_and(|left| left > 0.0) {
                return None;
            }
            // A limit of a month says little about the moment from which this request passes.
            reset(now, value.trim()).filter(|wait| *wait < LONGEST)
        })
        .max()
}

/// A reset: a duration, a point in time, or a bare number, which is seconds from now or, where it is
/// too large for that, seconds or milliseconds since 1970.
fn reset(now: Timestamp, value: &str) -> Option<Duration> {
    let Ok(number) = value.parse::<f64>() else {
        return duration(value).or_else(|| until(now, value.parse::<jiff::Timestamp>().ok()?));
    };
    if number < FIRST_EPOCH_SECOND {
        return bounded(number);
    }
    let seconds = if number < FIRST_EPOCH_MILLISECOND { number } else { number / 1000.0 };
    let moment = Duration::try_from_secs_f64(seconds).ok()?;
    moment
        .checked_sub(Duration::from_millis(now.0))
        .filter(|wait| *wait <= LONGEST && !wait.is_zero())
}

/// Numbers from here on are no wait but a point in time (2001 as seconds).
const FIRST_EPOCH_SECOND: f64 = 1e9;

/// Numbers from here on are points in time in milliseconds (2001 as well).
const FIRST_EPOCH_MILLISECOND: f64 = 1e12;

#[cfg(test)]
mod tests {
    use super::*;

    /// 2023-11-14T22:13:20Z
    const NOW: Timestamp = Timestamp(1_700_000_000_000);

    fn hint(headers: &[(&str, &str)], delays: &[&str], message: &str) -> Option<u128> {
        let headers: Vec<(String, String)> =
            headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let delays: Vec<Duration> = delays.iter().filter_map(|delay| duration(delay)).collect();
        find(NOW, ErrorKind::RateLimit, &headers, &delays, message).map(|wait| wait.as_millis())
    }

    /// SPEC M13
    #[test]
    fn every_form_of_a_hint_is_read() {
        for (headers, delays, message, milliseconds) in [
            (&[("retry-after", "2")][..], &[][..], "", Some(2_000)),
            (&[("retry-after", "0.5")], &[], "", Some(500)),
            (&[("retry-after", "1m2s")], &[], "", Some(62_000)),
            (&[("retry-after", "Tue, 14 Nov 2023 22:13:30 GMT")], &[], "", Some(10_000)),
            (&[("retry-after", "Tue, 14 Nov 2023 22:13:00 GMT")], &[], "", None),
            (&[("retry-after", "soon")], &[], "", None),
            (&[("retry-after", "-3")], &[], "", None),
            // Too long to wait for, and never a reason to ask sooner.
            (&[("retry-after", "1e300")], &[], "", Some(LONGEST.as_millis())),
            (&[("retry-after", "99999999999999999999")], &[], "", Some(LONGEST.as_millis())),
            (
                &[("retry-after", "Tue, 01 Dec 2037 04:00:00 GMT")],
                &[],
                "",
                Some(LONGEST.as_millis()),
            ),
            (&[("retry-after", "inf")], &[], "", None),
            (&[], &["99999999999999999999s"], "", Some(LONGEST.as_millis())),
            (&[("x-ratelimit-reset-requests", "9999h")], &[], "", None),
            (&[("retry-after", "nan")], &[], "", None),
            (&[("retry-after", "9"), ("retry-after-ms", "1500")], &[], "", Some(1_500)),
            (&[("retry-after", "9"), ("retry-after-ms", "?")], &[], "", Some(9_000)),
            (&[], &["34.07s"], "", Some(34_070)),
            (&[], &[], "Please try again in 1m0.36s. Thank you", Some(60_360)),
            (&[], &[], "please try again in 250ms.", Some(250)),
            (&[], &[], "Retry after 20 seconds", Some(20_000)),
            (&[], &[], "try again in 2 minutes", Some(120_000)),
            (&[], &[], "try again in a while", None),
            (&[], &[], "Please retry in 3.5s, or pay", Some(3_500)),
            (&[], &[], "your quota will reset after 1h2m3s.", Some(3_723_000)),
            (&[], &[], "Please wait 7 seconds before you ask", Some(7_000)),
            (&[("x-ratelimit-reset-requests", "12")], &[], "", Some(12_000)),
            (&[("x-ratelimit-reset", "1700000030000")], &[], "", Some(30_000)),
            (&[("x-ratelimit-reset", "1700000031")], &[], "", Some(31_000)),
            (&[("x-ratelimit-reset", "1600000000")], &[], "", None),
            (&[("ratelimit-reset", "9"), ("ratelimit-remaining", "3")], &[], "", None),
            (
                &[
                    ("x-ratelimit-reset-requests", "2m59.56s"),
                    ("x-ratelimit-remaining-requests", "0"),
                    ("x-ratelimit-reset-tokens", "7.66s"),
                    ("x-ratelimit-remaining-tokens", "5"),
                ],
                &[],
                "",
                Some(179_560),
            ),
            (
                &[
                    ("anthropic-ratelimit-requests-reset", "2023-11-14T22:14:00Z"),
                    ("anthropic-ratelimit-tokens-reset", "2023-11-14T22:13:50Z"),
                    ("anthropic-ratelimit-requests-remaining", "7"),
                    ("anthropic-ratelimit-tokens-remaining", "0"),
                ],
                &[],
                "",
                Some(30_000),
            ),
            (&[("retry-after", "1"), ("x-ratelimit-reset-tokens", "9s")], &[], "", Some(1_000)),
        ] {
            assert_eq!(hint(headers, delays, message), milliseconds, "{headers:?} {message}");
        }
    }

    #[test]
    fn fields_of_a_body_are_numbers_or_durations() {
        let second = Duration::from_secs(1);
        for (field, unit, milliseconds) in [
            (serde_json::json!(3), second, Some(3_000)),
            (serde_json::json!("2.5"), second, Some(2_500)),
            (serde_json::json!("1m"), second, Some(60_000)),
            (serde_json::json!(250), Duration::from_millis(1), Some(250)),
            (serde_json::json!(-1), second, None),
            (serde_json::json!("soon"), second, None),
            (serde_json::json!(null), second, None),
        ] {
            assert_eq!(
                of_field(&field, unit).map(|wait| wait.as_millis()),
                milliseconds,
                "{field}"
            );
        }
    }
}
