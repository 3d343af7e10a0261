//! Permission: what a call may do, decided before it does it.
//!
//! [`Policy`] judges the effects of a call's final arguments and gives a [`Judgement`] with its
//! reasons; it performs nothing. [`PermissionLayer`] asks it, asks a person where it says so, and
//! hands the tool a [`Grant`] for exactly what was judged. What cannot be decided is denied.
//!
//! Until a command's text is analysed, a command is one effect that nobody can see into: it asks in
//! every mode but `bypass`, and `read-only` denies it.

mod credentials;
mod judgement;
mod layer;
mod mode;

pub use self::credentials::Credentials;
pub use self::judgement::{Judged, Judgement, Policy, Reason, ReasonSource, Verdict};
pub use self::layer::{Permission, PermissionLayer, PermissionService};
pub use self::mode::{PermissionMode, UnknownMode};
