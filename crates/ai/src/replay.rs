//! What of a history may be sent to a target, whoever made it (SPEC M9, M16): the rules that all
//! encoders share.

use crate::api::Api;
use crate::compat::ImageTypes;
use crate::message::AssistantMessage;
use crate::provider_entry::ProviderEntry;
use crate::request::Request;

/// Stands in a tool result that has no content: every API wants some.
pub(crate) const NO_OUTPUT: &str = "(no output)";

/// Stands where an image was, for models that read text only.
pub(crate) const IMAGE_NOTE: &str = "[an image was left out: this model reads text only]";

/// Stands where an image was that the model cannot read.
pub(crate) const IMAGE_TYPE_NOTE: &str =
    "[an image was left out: this model does not read images of its type]";

/// Stands where an answer held an image: in most APIs only users show some.
pub(crate) const ANSWER_IMAGE_NOTE: &str = "[an image that the model made was left out]";

/// Stands where a user has to speak and did not: before an answer that nobody asked for, and behind
/// one that the model is to go on from.
pub(crate) const NO_QUESTION: &str = "(no text)";

/// Stands between a tool's result and what the user says, where a host wants an answer there.
pub(crate) const NO_ANSWER: &str = "(no answer)";

/// Stands in a tool result that has images alone, where results hold text and images follow.
const IMAGES_FOLLOW: &str = "(see the image below)";

/// Stands before a tool's images, where they go back in a user's message.
pub(crate) const IMAGES_HEAD: &str = "Images from the tool results:";

/// Stands between texts that are joined into one.
pub(crate) const PARAGRAPH: &str = "\n\n";

/// A tool's result as one text, for APIs whose results hold nothing else.
pub(crate) fn result_text(texts: &[&str], has_images: bool) -> String {
    match (texts.is_empty(), has_images) {
        (false, _) => texts.join(PARAGRAPH),
        (true, false) => NO_OUTPUT.to_owned(),
        (true, true) => IMAGES_FOLLOW.to_owned(),
    }
}

/// Whether text is worth sending: blank text is refused by some hosts and says nothing to any.
pub(crate) fn is_sendable(text: &str) -> bool {
    !text.trim().is_empty()
}

/// What a request says last and only once; nothing if it is blank.
pub(crate) fn volatile_text(request: &Request) -> Option<&str> {
    Some(&*request.volatile_text).filter(|text| is_sendable(text))
}

/// The types of images that a model is sent; `None` for one that reads text only.
pub(crate) type SentImages = Option<&'static [&'static str]>;

/// Those of this model.
pub(crate) fn sent_images(entry: &ProviderEntry, model: &str) -> SentImages {
    entry.sends_images(model).then_some(match (entry.compat.image_types, entry.api) {
        (ImageTypes::PngAndJpeg, _) => &["image/png", "image/jpeg"],
        (ImageTypes::OfApi, Api::GoogleGenerate) => {
            &["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"]
        }
        (ImageTypes::OfApi, Api::AnthropicMessages | Api::OpenaiChat | Api::OpenaiResponses) => {
            &["image/png", "image/jpeg", "image/webp", "image/gif"]
        }
    })
}

/// The type under which an image is sent, or what is said in its place.
pub(crate) fn image_type(
    sent: SentImages,
    mime_type: &str,
    data: &str,
) -> Result<&'static str, &'static str> {
    let Some(known) = sent else { return Err(IMAGE_NOTE) };
    // What a type may be followed by says nothing of images.
    let name = mime_type.split(';').next().unwrap_or_default().trim();
    let name = if name.eq_ignore_ascii_case("image/jpg") { "image/jpeg" } else { name };
    known
        .iter()
        .copied()
        .find(|known| known.eq_ignore_ascii_case(name) && !data.is_empty())
        .ok_or(IMAGE_TYPE_NOTE)
}

/// Who made a message, seen from the target of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Maker {
    /// The same provider, API and model: everything goes back byte for byte.
    SameModel,
    /// The same provider and API, another model.
    SameProvider,
    /// Somebody else.
    Other,
}

impl Maker {
    pub(crate) fn of(message: &AssistantMessage, entry: &ProviderEntry, model: &str) -> Self {
        if message.provider != entry.name || message.api != entry.api.as_str() {
            Self::Other
        } else if is_same_model(&message.model, model)
            || message.asked_model.as_deref().is_some_and(|asked| is_same_model(asked, model))
        {
            Self::SameModel
        } else {
            Self::SameProvider
        }
    }
}

/// Whether two names mean one model: a provider may answer to an alias with the dated name.
pub(crate) fn is_same_model(one: &str, other: &str) -> bool {
    fn undated(name: &str) -> &str {
        let name = name.strip_suffix("-latest").unwrap_or(name);
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-');
        // `-20250929` or `-2024-08-06`, not the `-4-5` of a version.
        let tail = name.get(stem.len()..).unwrap_or_default();
        let digits = tail.bytes().filter(u8::is_ascii_digit).count();
        match tail.rfind("-20") {
            Some(at) if digits >= 8 => {
                let date = tail.get(at..).unwrap_or_default();
                if date.bytes().filter(u8::is_ascii_digit).count() == 8 {
                    name.strip_suffix(date).unwrap_or(name)
                } else {
                    name
                }
            }
            Some(_) | None => name,
        }
    }
    one == other || undated(one) == undated(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dated_name_is_its_alias() {
        for (one, other, same) in [
            ("claude-sonnet-4-5", "claude-sonnet-4-5", true),
            ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929", true),
            ("claude-3-5-haiku-latest", "claude-3-5-haiku-20241022", true),
            ("gpt-4o", "gpt-4o-2024-08-06", true),
            ("claude-sonnet-4", "claude-sonnet-4-5", false),
            ("claude-sonnet-4-20250514", "claude-sonnet-4-5-20250929", false),
            ("gpt-4o", "gpt-4o-mini", false),
            ("gpt-4", "gpt-4-0613", false),
            ("", "20241022", false),
        ] {
            assert_eq!(is_same_model(one, other), same, "{one} {other}");
            assert_eq!(is_same_model(other, one), same, "{other} {one}");
        }
    }
}
