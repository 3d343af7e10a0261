//! What `ai` makes of tools is held to the rules of each API, which know nothing of how it is made.

use std::sync::Arc;

use ai::{
    Api, Message, Origin, ProviderEntry, Request, SchemaForm, ToolChoice, ToolSpec, UserMessage,
    encode_request,
};
use serde_json::{Value, json};

use crate::client::{ANTHROPIC, CHAT, GOOGLE, RESPONSES};
use crate::rules::check_accepted;

/// Schemas as they come from anywhere: of any draft, of generators' habits, and odd ones.
fn schemas() -> Vec<Value> {
    let closed = |properties: Value| {
        let names: Vec<&String> = properties.as_object().unwrap().keys().collect();
        json!({"type": "object", "additionalProperties": false, "required": names,
            "properties": properties})
    };
    vec![
        json!({}),
        json!(true),
        json!({"type": "string"}),
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        json!({"anyOf": [{"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]},
            {"$ref": "#/$defs/B"}], "$defs": {"B": {"properties": {"b": false}}}}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/Args",
            "definitions": {"Args": {"type": "object", "required": ["pair", "tree"], "properties": {
                "pair": {"type": "array", "items": [{"type": "string"}, true]},
                "tree": {"description": "d", "$ref": "#/definitions/Tree"}}},
                "Tree": {"properties": {"left": {"anyOf": [{"$ref": "#/definitions/Tree"},
                    {"type": "null"}], "default": null}}}}}),
        json!({"type": "object", "properties": {
            "any": {}, "no": false, "list": {"type": "array"}, "nothing": {"type": "null"},
            "maybe": {"type": ["string", "null"], "format": "uri", "default": null},
            "either": {"type": ["string", "integer", "object", "array"], "minimum": 1},
            "mode": {"oneOf": [{"const": "a", "title": "A"}, {"const": "b"}], "description": "d"},
            "mixed": {"enum": ["a", 1, null, true, ""]},
            "number": {"type": "integer", "exclusiveMinimum": 0, "enum": [1, 2]},
            "both": {"allOf": [{"$ref": "#/properties/maybe"}, {"maxLength": 3}]},
            "self": {"$ref": "#"},
            "away": {"$ref": "https://host/schema.json"},
        }, "required": ["any", "no", "unknown"], "if": {"required": ["any"]}, "then": {}}),
        closed(json!({"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "null"}}})),
        closed(json!({"a": {"$ref": "#"}, "b": {"anyOf": [{"type": "string"}, {"type": "null"}]}})),
        closed(json!({"a": {"type": ["object", "null"]}})),
        closed(json!({"a": {"type": "string", "default": "x"}})),
        closed(json!({"a": {"enum": ["x"]}})),
        closed(json!({})),
    ]
}

/// SPEC M15, M17
#[tokio::test]
async fn tools_of_any_schema_are_accepted_in_every_form() {
    let tools: Arc<[ToolSpec]> = schemas()
        .into_iter()
        .enumerate()
        .map(|(index, input_schema)| ToolSpec {
            name: format!("mcp.tool {index}"),
            description: "does it".into(),
            input_schema,
        })
        .collect();
    let forms = [
        SchemaForm::JsonSchema,
        SchemaForm::NoReferences,
        SchemaForm::OpenApi,
        SchemaForm::Grammar,
    ];
    let choices = [
        ToolChoice::Auto,
        ToolChoice::None,
        ToolChoice::Required,
        ToolChoice::Tool("mcp.tool 1".into()),
    ];
    for (api, path) in [
        (Api::AnthropicMessages, ANTHROPIC),
        (Api::OpenaiChat, CHAT),
        (Api::OpenaiResponses, RESPONSES),
        (Api::GoogleGenerate, GOOGLE),
    ] {
        let mut bodies = Vec::new();
        for (form, choice) in forms.iter().zip(&choices) {
            let mut entry = ProviderEntry::new("host", api, "http://127.0.0.1/v1");
            entry.compat.schema_form = *form;
            entry.compat.strict_tools = true;
            let said: Message = UserMessage::text("hi", Origin::User).into();
            let mut request = Request::new("m", [said].into_iter().collect());
            request.system_prompt = "be brief".into();
            request.tools = Arc::clone(&tools);
            request.tool_choice = choice.clone();
            request.volatile_text = "for once".into();
            bodies.push(serde_json::from_slice(&encode_request(&request, &entry)).unwrap());
        }
        check_accepted(path, &bodies).await;
    }
}
