//! [`Host`]: the rules of one provider's server, on top of its API's.
//!
//! Many hosts speak one API and refuse what others take: roles that do not alternate, ids of another
//! form, fields that they do not know. A host is data, one entry in a table; the checks that read the
//! entry are in a module for each API. Nothing of the client's own table of dialects is used here.
//!
//! **Invariant:** a host takes only signatures and ciphers that [`Host::sign`] made for the same host
//! and model, so a client that brings thinking to a model that did not think it is refused without the
//! server remembering what it said.

mod chat;
mod generate;
mod messages;
mod responses;
mod table;

use std::fmt;

use ai::Api;
use serde_json::Value;

use crate::refusal::Refusal;
use crate::signature::{BASE64_PREFIX, FINGERPRINT_CHARS, fingerprint};
use chat::ChatRules;

type Checked = Result<(), Refusal>;

/// One provider's server, as strict as the real one. See the module's documentation.
///
/// ```
/// use scripted_model::Host;
///
/// let mistral = Host::find("mistral").ok_or("unknown host")?;
/// assert_eq!(mistral.api(), ai::Api::OpenaiChat);
/// assert!(Host::all().iter().any(|host| host.name() == "anthropic"));
/// # Ok::<(), &str>(())
/// ```
pub struct Host {
    name: &'static str,
    /// The types of images that it reads; none where it reads text alone.
    images: &'static [&'static str],
    speaks: Speaks,
    /// Its error for a message, where it is not the API's own.
    error: Option<fn(message: &str, status: u16) -> Value>,
}

/// The API that a host speaks, with what it asks beyond it.
enum Speaks {
    Messages,
    Chat(ChatRules),
    Responses,
    Generate,
}

impl Host {
    /// Every host that is known.
    pub fn all() -> &'static [Self] {
        table::HOSTS
    }

    /// The host of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        Self::all().iter().find(|host| host.name == name)
    }

    /// The provider's name, such as `mistral`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The API that it speaks; it answers 404 to others.
    pub fn api(&self) -> Api {
        match self.speaks {
            Speaks::Messages => Api::AnthropicMessages,
            Speaks::Chat(_) => Api::OpenaiChat,
            Speaks::Responses => Api::OpenaiResponses,
            Speaks::Generate => Api::GoogleGenerate,
        }
    }

    /// A signature, or a cipher, that this host takes back from `model` alone. `label` tells several
    /// apart. It is base64, as some hosts ask.
    pub fn sign(&self, model: &str, label: &str) -> String {
        format!("{}{}", self.mark(model), fingerprint(label))
    }

    /// Whether [`Self::sign`] made it for this model.
    fn knows(&self, model: &str, signature: &str) -> bool {
        let label = signature.strip_prefix(self.mark(model).as_str());
        label.is_some_and(|label| {
            label.len() == FINGERPRINT_CHARS && label.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    }

    fn mark(&self, model: &str) -> String {
        format!("{BASE64_PREFIX}{}", fingerprint(&format!("{} {model}", self.name)))
    }

    /// Checks a body that has passed its API's checks. `model` is the one asked for.
    pub(crate) fn check(&self, model: &str, body: &Value) -> Checked {
        match &self.speaks {
            Speaks::Messages => messages::check(self, model, body),
            Speaks::Chat(rules) => rules.check(self, model, body),
            Speaks::Responses => responses::check(self, model, body),
            Speaks::Generate => generate::check(self, model, body),
        }
    }

    /// The body of its error, where it is not the API's own.
    pub(crate) fn refusal_body(&self, refusal: &Refusal) -> Option<Value> {
        self.error.map(|error| error(&refusal.to_string(), refusal.status()))
    }

    fn check_image(&self, place: &str, mime_type: &str) -> Checked {
        if self.images.is_empty() {
            return Err(Refusal::at(place, "this model reads text only"));
        }
        if self.images.contains(&mime_type) {
            return Ok(());
        }
        Err(Refusal::at(
            place,
            format!("unsupported image {mime_type:?}, expected {}", self.images.join(", ")),
        ))
    }

    /// Checks an image that is given as an address; one that is not inline is not looked at.
    fn check_image_address(&self, place: &str, address: &str) -> Checked {
        let inline = address.strip_prefix("data:").map(|data| data.split_once(";base64,"));
        match inline {
            Some(Some((mime_type, data))) if !data.is_empty() => self.check_image(place, mime_type),
            Some(_) => Err(Refusal::at(place, "invalid base64 image")),
            None if self.images.is_empty() => self.check_image(place, ""),
            None => Ok(()),
        }
    }

    fn check_signature(&self, place: &str, model: &str, signature: &str) -> Checked {
        if self.knows(model, signature) {
            Ok(())
        } else {
            Err(Refusal::at(place, "invalid signature: this model did not make it"))
        }
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The entries of a list, none where it is none.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
