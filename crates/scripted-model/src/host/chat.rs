//! What hosts of Chat Completions ask beyond OpenAI's form of it.

use serde_json::Value;

use super::{Checked, Host, list};
use crate::refusal::Refusal;

/// Mistral's length of ids.
const NINE: usize = 9;

/// One host's rules. Each is off, or wide open, in [`OPEN`].
pub(super) struct ChatRules {
    /// What a body may have at its top; anything where it is empty.
    pub(super) body_fields: &'static [&'static str],
    /// What a message may have; anything where it is empty.
    pub(super) message_fields: &'static [&'static str],
    /// The roles that carry instructions.
    pub(super) instruction_roles: &'static [&'static str],
    /// The names of the cap on output tokens.
    pub(super) caps: &'static [&'static str],
    /// Ids of calls have nine letters and digits.
    pub(super) nine_character_ids: bool,
    /// Instructions come first and nowhere else.
    pub(super) instructions_first: bool,
    /// Behind the instructions the user begins.
    pub(super) begins_with_user: bool,
    /// The user or a tool has the last word.
    pub(super) ends_with_user: bool,
    /// Neither the user nor the assistant speaks twice in a row.
    pub(super) alternates: bool,
    /// Between a tool's result and what the user says there is an answer.
    pub(super) answers_results: bool,
    /// Which answers bring their reasoning back.
    pub(super) reasoning: Reasoning,
}

/// Which answers bring their `reasoning_content` back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reasoning {
    /// Those that like to.
    Free,
    /// Those that made calls.
    WithCalls,
    /// All between two things that the user says, if one of them made calls.
    InCallingTurns,
}

/// A host that asks no more than OpenAI did at first.
pub(super) const OPEN: ChatRules = ChatRules {
    body_fields: &[],
    message_fields: &[],
    instruction_roles: &["system"],
    caps: &["max_tokens", "max_completion_tokens"],
    nine_character_ids: false,
    instructions_first: false,
    begins_with_user: false,
    ends_with_user: false,
    alternates: false,
    answers_results: false,
    reasoning: Reasoning::Free,
};

impl ChatRules {
    pub(super) fn check(&self, host: &Host, model: &str, body: &Value) -> Checked {
        check_fields("", body, self.body_fields)?;
        let caps = ["max_tokens", "max_completion_tokens"];
        let unknown = caps.iter().find(|cap| body.get(**cap).is_some() && !self.caps.contains(cap));
        if let Some(cap) = unknown {
            return Err(Refusal::at(
                cap,
                format!("unsupported parameter, use {} instead", self.caps.join(" or ")),
            ));
        }
        let messages = list(&body["messages"]);
        for (index, message) in messages.iter().enumerate() {
            self.check_message(host, model, &format!("messages[{index}]"), message)?;
        }
        self.check_order(messages)?;
        self.check_reasoning(messages)
    }

    fn check_message(&self, host: &Host, model: &str, place: &str, message: &Value) -> Checked {
        check_fields(place, message, self.message_fields)?;
        let role = message["role"].as_str().unwrap_or_default();
        if matches!(role, "system" | "developer") && !self.instruction_roles.contains(&role) {
            return Err(Refusal::at(
                format!("{place}.role"),
                format!("unknown variant {role:?}, expected system, user, assistant or tool"),
            ));
        }
        for (index, part) in list(&message["content"]).iter().enumerate() {
            if part["type"] == "image_url" {
                let address = part["image_url"]["url"].as_str().unwrap_or_default();
                host.check_image_address(&format!("{place}.content[{index}].image_url"), address)?;
            }
        }
        for (index, detail) in list(&message["reasoning_details"]).iter().enumerate() {
            for name in ["signature", "data"] {
                if let Some(signature) = detail[name].as_str() {
                    let place = format!("{place}.reasoning_details[{index}].{name}");
                    host.check_signature(&place, model, signature)?;
                }
            }
        }
        if !self.nine_character_ids {
            return Ok(());
        }
        let calls = list(&message["tool_calls"]).iter().map(|call| &call["id"]);
        for id in calls.chain(message.get("tool_call_id")) {
            let id = id.as_str().unwrap_or_default();
            if id.len() != NINE || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                return Err(Refusal::at(
                    place,
                    format!("tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9"),
                ));
            }
        }
        Ok(())
    }

    fn check_order(&self, messages: &[Value]) -> Checked {
        let mut previous = "";
        for (index, message) in messages.iter().enumerate() {
            let place = format!("messages[{index}].role");
            let role = match message["role"].as_str().unwrap_or_default() {
                "developer" => "system",
                role => role,
            };
            let is_first = matches!(previous, "" | "system");
            let is_out_of_place = match role {
                "system" => self.instructions_first && !is_first,
                "user" => {
                    (self.alternates && previous == "user")
                        || (self.answers_results && previous == "tool")
                }
                "assistant" => {
                    (self.alternates && previous == "assistant")
                        || (self.begins_with_user && is_first)
                }
                _ => false,
            };
            if is_out_of_place {
                let previous = if previous.is_empty() { "nothing" } else { previous };
                return Err(Refusal::at(
                    place,
                    format!("unexpected role '{role}' after role '{previous}'"),
                ));
            }
            previous = role;
        }
        if self.ends_with_user && !matches!(previous, "user" | "tool") {
            return Err(Refusal::at(
                "messages",
                format!("expected last role user or tool for serving but got {previous}"),
            ));
        }
        Ok(())
    }

    fn check_reasoning(&self, messages: &[Value]) -> Checked {
        let has_calls = |message: &Value| !list(&message["tool_calls"]).is_empty();
        let turns = messages.split(|message| message["role"] == "user");
        for turn in turns {
            let asked_for: Box<dyn Fn(&Value) -> bool> = match self.reasoning {
                Reasoning::Free => return Ok(()),
                Reasoning::WithCalls => Box::new(has_calls),
                Reasoning::InCallingTurns if turn.iter().any(has_calls) => Box::new(|_| true),
                Reasoning::InCallingTurns => continue,
            };
            let lacks = |message: &&Value| {
                message["role"] == "assistant"
                    && asked_for(message)
                    && message["reasoning_content"].as_str().is_none_or(str::is_empty)
            };
            if turn.iter().find(lacks).is_some() {
                return Err(Refusal::at(
                    "messages",
                    "the `reasoning_content` in the thinking mode must be passed back to the API",
                ));
            }
        }
        Ok(())
    }
}

fn check_fields(place: &str, value: &Value, known: &[&str]) -> Checked {
    let unknown = value
        .as_object()
        .into_iter()
        .flat_map(|fields| fields.keys())
        .find(|field| !known.is_empty() && !known.contains(&field.as_str()));
    match unknown {
        Some(field) if place.is_empty() => {
            Err(Refusal::at(field, "extra inputs are not permitted"))
        }
        Some(field) => {
            Err(Refusal::at(format!("{place}.{field}"), "extra inputs are not permitted"))
        }
        None => Ok(()),
    }
}
