//! Signatures of thinking blocks whose script gives none.
//!
//! **Invariant:** a signature made here fits one text only, so that a client that brings thinking
//! back changed is refused, as the real API does, without the server remembering what it said.

/// Marks the signatures that were made here; others are taken as they are.
const PREFIX: &str = "scripted-";

/// Begins the signatures made here for an API that wants them in base64. With the 16 digits behind it
/// the length is a multiple of four, and all of it is of base64's alphabet.
pub(crate) const BASE64_PREFIX: &str = "scripted";

/// How long a fingerprint is.
pub(crate) const FINGERPRINT_CHARS: usize = 16;

/// The signature of a text.
pub(crate) fn sign(text: &str) -> String {
    format!("{PREFIX}{}", fingerprint(text))
}

/// The signature of a text, as base64.
pub(crate) fn sign_base64(text: &str) -> String {
    format!("{BASE64_PREFIX}{}", fingerprint(text))
}

/// Whether a signature is one of ours for another text.
pub(crate) fn is_forged(signature: &str, text: &str) -> bool {
    signature.starts_with(PREFIX) && signature != sign(text)
}

/// What tells one text from another, in 16 hexadecimal digits.
pub(crate) fn fingerprint(text: &str) -> String {
    format!("{:016x}", hash(text))
}

/// FNV-1a with 64 bits: stable between builds and machines, and no secret is kept here.
fn hash(text: &str) -> u64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    text.bytes().fold(OFFSET_BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}
