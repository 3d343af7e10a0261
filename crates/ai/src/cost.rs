//! [`Price`]: what a model's tokens cost.
//!
//! Prices come from the catalogue or from configuration. A cost that is not known is said to be
//! unknown and never counted as nothing; [`SpendMeter`](crate::SpendMeter) adds up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::message::Usage;

/// Prices are for this many tokens.
const PER_TOKENS: f64 = 1_000_000.0;

/// What a model's tokens cost, in US dollars for a million.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Written")]
#[schemars(with = "Written")]
#[non_exhaustive]
pub struct Price {
    /// Of input that came from no cache.
    pub input: f64,
    /// Of output, thinking included.
    pub output: f64,
    /// Of input read from a cache; that of other input where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Of input written to a cache; that of other input where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// Other prices for requests whose whole input is larger.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub above: Vec<PriceAbove>,
}

/// The prices of a request whose whole input, cached or not, has more than `tokens` tokens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PriceAbove {
    /// The threshold.
    pub tokens: u64,
    /// Of input that came from no cache.
    pub input: f64,
    /// Of output, thinking included.
    pub output: f64,
    /// Of input read from a cache; that of other input where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Of input written to a cache; that of other input where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

/// What a model's tokens cost, in US dollars for a million.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table with `input` and `output`")]
#[schemars(rename = "Price")]
struct Written {
    /// Of input that came from no cache, in US dollars for a million tokens.
    input: f64,
    /// Of output, thinking included.
    output: f64,
    /// Of input read from a cache; that of other input where there is none.
    cache_read: Option<f64>,
    /// Of input written to a cache; that of other input where there is none.
    cache_write: Option<f64>,
    /// Other prices for requests whose whole input is larger.
    #[serde(default)]
    above: Vec<PriceAbove>,
}

/// A price below zero, or none at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a price must be a number of US dollars for a million tokens, and not negative")]
pub struct InvalidPrice;

impl TryFrom<Written> for Price {
    type Error = InvalidPrice;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        let Written { input, output, cache_read, cache_write, above } = written;
        let above_prices = above.iter().flat_map(|above| {
            [Some(above.input), Some(above.output), above.cache_read, above.cache_write]
        });
        let all =
            [Some(input), Some(output), cache_read, cache_write].into_iter().chain(above_prices);
        if all.flatten().any(|price| !price.is_finite() || price < 0.0) {
            return Err(InvalidPrice);
        }
        Ok(Self { input, output, cache_read, cache_write, above })
    }
}

impl Price {
    /// What one request with this usage cost, in US dollars.
    pub fn cost(&self, usage: Usage) -> f64 {
        let whole = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
        let above = self.above.iter().filter(|above| whole > above.tokens);
        let (input, output, cache_read, cache_write) = match above.max_by_key(|above| above.tokens)
        {
            Some(above) => (above.input, above.output, above.cache_read, above.cache_write),
            None => (self.input, self.output, self.cache_read, self.cache_write),
        };
        let of = |tokens: u64, price: f64| tokens as f64 * price;
        let total = of(usage.input, input)
            + of(usage.output, output)
            + of(usage.cache_read, cache_read.unwrap_or(input))
            + of(usage.cache_write, cache_write.unwrap_or(input));
        total / PER_TOKENS
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn price(json: serde_json::Value) -> Price {
        serde_json::from_value(json).unwrap()
    }

    fn usage(input: u64, output: u64, cache_read: u64, cache_write: u64) -> Usage {
        Usage { input, output, cache_read, cache_write, reasoning: output }
    }

    /// SPEC M10
    #[test]
    fn every_kind_of_token_has_its_price_and_is_counted_once() {
        let plain = price(json!({"input": 3, "output": 15}));
        let cached =
            price(json!({"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75}));
        let above = price(json!({
            "input": 1, "output": 10, "cache_read": 0.1,
            "above": [{"tokens": 200, "input": 2, "output": 20}, {"tokens": 400, "input": 4, "output": 40}],
        }));
        for (price, usage, dollars_for_a_million) in [
            (&plain, usage(1, 0, 0, 0), 3.0),
            (&plain, usage(0, 1, 0, 0), 15.0),
            (&plain, usage(1, 1, 2, 3), 3.0 + 15.0 + 15.0),
            (&cached, usage(1, 1, 10, 4), 3.0 + 15.0 + 3.0 + 15.0),
            (&above, usage(100, 1, 100, 0), 100.0 + 10.0 + 10.0),
            // The whole input decides, and beyond a threshold everything costs more.
            (&above, usage(101, 1, 100, 0), 202.0 + 20.0 + 200.0),
            (&above, usage(500, 1, 0, 0), 2000.0 + 40.0),
        ] {
            let cost = price.cost(usage) * 1e6;
            assert!((cost - dollars_for_a_million).abs() < 1e-6, "{usage:?}: {cost}");
        }
    }

    #[test]
    fn no_price_is_negative() {
        for wrong in [
            json!({"input": -1, "output": 1}),
            json!({"input": 1, "output": 1, "cache_read": -0.1}),
            json!({"input": 1, "output": 1, "above": [{"tokens": 1, "input": 1, "output": -1}]}),
            json!({"input": 1}),
        ] {
            assert!(serde_json::from_value::<Price>(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
