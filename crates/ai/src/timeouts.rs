//! [`Timeouts`]: how long a request waits for what (SPEC M14).

use std::time::Duration;

/// The three waits of a request. Each ends in an error of kind `timeout` that says which it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the connection stands, name look-up and TLS included.
    pub connect: Duration,
    /// From the start of the request until the first byte of the answer's body. Models think before
    /// they speak, and some hosts send their headers long before.
    pub first_byte: Duration,
    /// Between two pieces of the body. Pings count as life.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(120),
            idle: Duration::from_secs(60),
        }
    }
}
