//! The rules of Google's generateContent: one bad body a rule, over the wire.

use scripted_model::{Entry, RecordedRequest, ScriptedModel, Turn};
use serde_json::{Value, json};

use crate::client::{Exchange, GOOGLE, ask, asking, headers};
use crate::rules::{check_accepted, check_refused, text, with};

fn google(fields: Value) -> Value {
    with(GOOGLE, fields)
}

fn user(parts: Value) -> Value {
    json!({"role": "user", "parts": parts})
}

fn model(parts: Value) -> Value {
    json!({"role": "model", "parts": parts})
}

fn hi() -> Value {
    user(json!([{"text": "hi"}]))
}

/// The user says hi, then these.
fn after_hi(rest: &[Value]) -> Value {
    let mut all = vec![hi()];
    all.extend_from_slice(rest);
    google(json!({"contents": all}))
}

fn call(id: &str) -> Value {
    json!({"functionCall": {"id": id, "name": "Read", "args": {}}})
}

fn response(id: &str) -> Value {
    json!({"functionResponse": {"id": id, "name": "Read", "response": {"output": "ok"}}})
}

/// A call and a response without ids.
fn bare(name: &str) -> (Value, Value) {
    (
        json!({"functionCall": {"name": name}}),
        json!({"functionResponse": {"name": name, "response": {}}}),
    )
}

/// One function with these parameters.
fn parameters(schema: Value) -> Value {
    google(json!({"tools": [{"functionDeclarations": [{"name": "n", "parameters": schema}]}]}))
}

fn property(schema: Value) -> Value {
    parameters(json!({"type": "OBJECT", "properties": {"p": schema}}))
}

#[tokio::test]
async fn google_refuses_bodies() {
    let config = |config: Value| google(json!({"generationConfig": config}));
    let thinking = |thinking: Value| config(json!({"thinkingConfig": thinking}));
    let function =
        |function: Value| google(json!({"tools": [{"functionDeclarations": [function]}]}));
    let calling = |calling: Value| {
        google(json!({"toolConfig": {"functionCallingConfig": calling},
            "tools": [{"functionDeclarations": [{"name": "n"}]}]}))
    };
    let at = "tools[0].functionDeclarations[0]";
    let schema = format!("{at}.parameters");
    let inner = format!("{schema}.properties[p]");
    let bad_name = |name: &str| {
        format!(
            "{at}.name: invalid function name {name:?}: it must start with a letter or an \
             underscore, and have letters, digits, underscores, dots and dashes, at most 64"
        )
    };
    let long = "n".repeat(65);
    check_refused(
        GOOGLE,
        &[
            (json!([]), "body: expected an object"),
            (google(json!({"model": "m"})), "unknown name \"model\": cannot find field"),
            (google(json!({"stream": true})), "unknown name \"stream\": cannot find field"),
            (config(json!([])), "generationConfig: expected an object"),
            (
                config(json!({"max_tokens": 1})),
                "generationConfig: unknown name \"max_tokens\": cannot find field",
            ),
            (
                config(json!({"maxOutputTokens": 0})),
                "generationConfig.maxOutputTokens: expected an integer of at least 1",
            ),
            (
                config(json!({"temperature": 3})),
                "generationConfig.temperature: expected a number from 0 to 2",
            ),
            (
                thinking(json!({"effort": "low"})),
                "generationConfig.thinkingConfig: unknown name \"effort\": cannot find field",
            ),
            (
                thinking(json!({"thinkingBudget": 1, "thinkingLevel": "LOW"})),
                "generationConfig.thinkingConfig: only one of thinkingBudget and thinkingLevel can \
                 be set",
            ),
            (
                thinking(json!({"thinkingBudget": -2})),
                "generationConfig.thinkingConfig.thinkingBudget: expected an integer of at least -1",
            ),
            (
                thinking(json!({"thinkingLevel": "max"})),
                "generationConfig.thinkingConfig.thinkingLevel: expected one of MINIMAL, LOW, \
                 MEDIUM, HIGH",
            ),
            (
                thinking(json!({"includeThoughts": "yes"})),
                "generationConfig.thinkingConfig.includeThoughts: expected a boolean",
            ),
            (google(json!({"systemInstruction": "s"})), "systemInstruction: expected an object"),
            (
                google(json!({"systemInstruction": {"parts": []}})),
                "systemInstruction.parts: contents.parts must not be empty",
            ),
            (
                google(json!({"systemInstruction": {"parts": [{"text": ""}]}})),
                "systemInstruction.parts[0].text: text must not be empty",
            ),
            (
                google(json!({"systemInstruction": {"parts": [{}]}})),
                "systemInstruction.parts[0]: expected a text",
            ),
            // Tools.
            (google(json!({"tools": {}})), "tools: expected an array"),
            (google(json!({"tools": [{}]})), "tools[0]: expected at least one tool"),
            (
                google(json!({"tools": [{"type": "function"}]})),
                "tools[0]: unknown name \"type\": cannot find field",
            ),
            (
                google(json!({"tools": [{"functionDeclarations": []}]})),
                "tools[0].functionDeclarations: expected an array of at least one function",
            ),
            (function(json!({"name": "1st"})), &bad_name("1st")),
            (function(json!({"name": "a b"})), &bad_name("a b")),
            (function(json!({"name": ""})), &bad_name("")),
            (function(json!({"name": long})), &bad_name(&long)),
            (
                function(json!({"name": "n", "strict": true})),
                &format!("{at}: unknown name \"strict\": cannot find field"),
            ),
            (
                google(json!({"tools": [{"functionDeclarations": [{"name": "n"}]},
                    {"functionDeclarations": [{"name": "n"}]}]})),
                "tools[1].functionDeclarations[0].name: duplicate function declaration found: n",
            ),
            (
                function(json!({"name": "n", "parameters": {}, "parametersJsonSchema": {}})),
                &format!("{at}: only one of parameters and parametersJsonSchema can be set"),
            ),
            (
                function(json!({"name": "n", "parametersJsonSchema": {}})),
                &format!("{at}.parametersJsonSchema: schema should be of the type 'object'"),
            ),
            (parameters(json!("x")), &format!("{schema}: expected an object")),
            (
                parameters(json!({"type": "string"})),
                &format!("{schema}: schema should be of the type OBJECT"),
            ),
            (
                parameters(json!({"type": "object", "additionalProperties": false})),
                &format!("{schema}: unknown name \"additionalProperties\": cannot find field"),
            ),
            (
                property(json!({"type": "string", "const": "x"})),
                &format!("{inner}: unknown name \"const\": cannot find field"),
            ),
            (
                property(json!({"type": "array", "items": {"$ref": "#/x"}})),
                &format!("{inner}.items: unknown name \"$ref\": cannot find field"),
            ),
            (
                property(json!({"anyOf": [{"type": "string"}, {"oneOf": []}]})),
                &format!("{inner}.anyOf[1]: unknown name \"oneOf\": cannot find field"),
            ),
            (
                property(json!({"type": ["string", "null"]})),
                &format!("{inner}.type: the field is not repeating, cannot start a list"),
            ),
            (
                property(json!({"type": "text"})),
                &format!(
                    "{inner}.type: expected one of STRING, NUMBER, INTEGER, BOOLEAN, ARRAY, OBJECT, \
                     NULL"
                ),
            ),
            (property(json!({})), &format!("{inner}.type: missing field")),
            (property(json!({"type": "array"})), &format!("{inner}.items: missing field")),
            (
                property(json!({"type": "integer", "enum": ["1"]})),
                &format!("{inner}.enum: expected strings, and only for the type STRING"),
            ),
            (
                property(json!({"type": "string", "enum": [1]})),
                &format!("{inner}.enum: expected strings, and only for the type STRING"),
            ),
            (
                property(json!({"type": "object", "properties": {}})),
                &format!("{inner}.properties: should be non-empty for the type OBJECT"),
            ),
            (
                parameters(json!({"type": "object"})),
                &format!("{schema}.properties: should be non-empty for the type OBJECT"),
            ),
            (
                property(json!({"anyOf": [{"type": "string"}, {"type": "null"}], "title": "t"})),
                &format!("{inner}: when using any_of, it must be the only field set"),
            ),
            (
                function(json!({"name": "n", "parametersJsonSchema": {"type": "object",
                    "properties": {"p": {"$ref": "#/$defs/P", "title": "t"}}, "$defs": {"P": {}}}})),
                &format!(
                    "{at}.parametersJsonSchema.properties.p: no other property may be set beside $ref"
                ),
            ),
            (
                function(json!({"name": "n", "parametersJsonSchema": {"type": "object",
                    "properties": {"p": {"$ref": "#/$defs/P"}}}})),
                &format!(
                    "{at}.parametersJsonSchema.properties.p: reference \"#/$defs/P\" not found"
                ),
            ),
            (
                parameters(json!({"type": "OBJECT", "properties": {"p": {"type": "STRING"}},
                    "required": ["q"]})),
                &format!("{schema}.required[0]: the property is not defined"),
            ),
            (
                calling(json!({"mode": "auto"})),
                "toolConfig.functionCallingConfig.mode: expected one of AUTO, ANY, NONE, VALIDATED",
            ),
            (
                calling(json!({"allowedFunctionNames": ["n"]})),
                "toolConfig.functionCallingConfig.allowedFunctionNames: should be set only in the \
                 modes ANY and VALIDATED",
            ),
            (
                calling(json!({"mode": "ANY", "allowedFunctionNames": ["q"]})),
                "toolConfig.functionCallingConfig.allowedFunctionNames: expected names of declared \
                 functions",
            ),
            (
                google(json!({"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}})),
                "toolConfig.functionCallingConfig: should be set with functionDeclarations only",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn google_refuses_contents() {
    let count = |place: &str, responses: usize, calls: usize| {
        format!(
            "{place}: please ensure that the number of function response parts is equal to the \
             number of function call parts of the function call turn: {responses} for {calls}"
        )
    };
    let part = |part: Value| google(json!({"contents": [user(json!([part]))]}));
    let answered = |part: Value| after_hi(&[model(json!([part])), hi()]);
    let (call_r, response_r) = bare("Read");
    let (_, response_w) = bare("Write");
    check_refused(
        GOOGLE,
        &[
            (google(json!({"contents": null})), "contents: contents is not specified"),
            (google(json!({"contents": []})), "contents: contents is not specified"),
            (
                google(json!({"contents": [{"parts": [{"text": "hi"}]}]})),
                "contents[0].role: please use a valid role: user, model",
            ),
            (
                after_hi(&[json!({"role": "assistant", "parts": [{"text": "x"}]})]),
                "contents[1].role: please use a valid role: user, model",
            ),
            (
                google(json!({"contents": [model(json!([{"text": "x"}]))]})),
                "contents[0]: the first content must be the user's",
            ),
            (
                after_hi(&[hi()]),
                "contents[1]: roles must alternate between user and model, got user twice",
            ),
            (
                after_hi(&[model(json!([{"text": "x"}]))]),
                "contents: please ensure that the request ends with a user role",
            ),
            (
                google(json!({"contents": [{"role": "user", "content": "x"}]})),
                "contents[0]: unknown name \"content\": cannot find field",
            ),
            (
                google(json!({"contents": [user(json!([]))]})),
                "contents[0].parts: contents.parts must not be empty",
            ),
            (part(json!({"text": ""})), "contents[0].parts[0].text: text must not be empty"),
            (
                part(json!({})),
                "contents[0].parts[0].data: required oneof field 'data' must have one initialized \
                 field",
            ),
            (part(text("x")), "contents[0].parts[0]: unknown name \"type\": cannot find field"),
            (
                part(json!({"text": "x", "inlineData": {}})),
                "contents[0].parts[0]: oneof field 'data' is already set, cannot set 'inlineData'",
            ),
            (
                part(json!({"inlineData": {"mimeType": "image/png", "data": ""}})),
                "contents[0].parts[0].inlineData.data: is required",
            ),
            (
                part(json!({"text": "x", "thought": true})),
                "contents[0].parts[0]: a thought belongs to the role model",
            ),
            (part(call("a")), "contents[0].parts[0]: a function call belongs to the role model"),
            (
                answered(response("a")),
                "contents[1].parts[0]: a function response belongs to the role user",
            ),
            (
                answered(json!({"text": "x", "thought": "yes"})),
                "contents[1].parts[0].thought: expected a boolean",
            ),
            (
                answered(json!({"text": "x", "thoughtSignature": "not base64!"})),
                "contents[1].parts[0].thoughtSignature: base64 decoding failed for a thought \
                 signature",
            ),
            (
                answered(json!({"text": "x", "thoughtSignature": "AAAAA"})),
                "contents[1].parts[0].thoughtSignature: base64 decoding failed for a thought \
                 signature",
            ),
            (answered(json!({"text": ""})), "contents[1].parts[0].text: text must not be empty"),
            // Calls and responses.
            (answered(call("a")), &count("contents[2]", 0, 1)),
            (
                after_hi(&[model(json!([call("a"), call("b")])), user(json!([response("a")]))]),
                &count("contents[2]", 1, 2),
            ),
            (
                after_hi(&[model(json!([{"text": "x"}])), user(json!([response("a")]))]),
                &count("contents[2]", 1, 0),
            ),
            (
                after_hi(&[model(json!([call("a")])), user(json!([response("a"), response("a")]))]),
                &count("contents[2]", 2, 1),
            ),
            (
                after_hi(&[
                    model(json!([call("a"), call("b")])),
                    user(json!([response("b"), response("a")])),
                ]),
                "contents[2].parts[0].functionResponse.id: expected the call's, \"a\", got \"b\"",
            ),
            (
                after_hi(&[model(json!([call("a")])), user(json!([response_r]))]),
                "contents[2].parts[0].functionResponse.id: expected the call's, \"a\", got \"\"",
            ),
            (
                after_hi(&[model(json!([call_r])), user(json!([response("a")]))]),
                "contents[2].parts[0].functionResponse.id: expected the call's, \"\", got \"a\"",
            ),
            (
                after_hi(&[model(json!([call_r])), user(json!([response_w]))]),
                "contents[2].parts[0].functionResponse.name: expected the call's, \"Read\", got \
                 \"Write\"",
            ),
            (
                after_hi(&[
                    model(json!([call("a")])),
                    user(json!([{"text": "first"}, response("a")])),
                ]),
                "contents[2].parts[1]: function responses come first",
            ),
            (
                after_hi(&[
                    model(json!([call("a"), call("a")])),
                    user(json!([response("a"), response("a")])),
                ]),
                "contents[1].parts[1].functionCall.id: ids of calls must be unique, \"a\" is twice",
            ),
            (
                answered(json!({"functionCall": {"name": "Read", "args": "{}"}})),
                "contents[1].parts[0].functionCall.args: expected an object",
            ),
            (
                answered(json!({"functionCall": {"name": "Read", "arguments": {}}})),
                "contents[1].parts[0].functionCall: unknown name \"arguments\": cannot find field",
            ),
            (
                answered(json!({"functionCall": {"name": "Read", "id": ""}})),
                "contents[1].parts[0].functionCall.id: expected a string that is not empty",
            ),
            (
                answered(json!({"functionCall": {"name": "a:b"}})),
                "contents[1].parts[0].functionCall.name: invalid function name \"a:b\": it must \
                 start with a letter or an underscore, and have letters, digits, underscores, dots \
                 and dashes, at most 64",
            ),
            (
                after_hi(&[
                    model(json!([call_r])),
                    user(json!([{"functionResponse": {"name": "Read", "response": "ok"}}])),
                ]),
                "contents[2].parts[0].functionResponse.response: expected an object",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn google_accepts() {
    let (call_r, response_r) = bare("Read");
    check_accepted(
        GOOGLE,
        &[
            google(json!({
                "systemInstruction": {"parts": [{"text": "s"}]},
                "generationConfig": {"maxOutputTokens": 1, "temperature": 0, "thinkingConfig":
                    {"includeThoughts": true, "thinkingBudget": -1}},
                "tools": [{"functionDeclarations": [
                    {"name": "now"},
                    {"name": "mcp.a-b", "description": "d", "parametersJsonSchema":
                        {"type": "object", "additionalProperties": false}},
                    {"name": "_n", "parameters": {"type": "object", "required": ["a"],
                        "properties": {
                            "a": {"type": "array", "items": {"type": "string", "enum": ["x"]}},
                            "b": {"anyOf": [{"type": "INTEGER"}, {"type": "NULL"}]},
                            "c": {"type": "OBJECT", "description": "open"}}}},
                    {"name": "r", "parametersJsonSchema": {"type": "object",
                        "properties": {"p": {"$ref": "#/$defs/P"}}, "$defs": {"P": {}}}},
                ]}, {"googleSearch": {}}],
                "toolConfig": {"functionCallingConfig":
                    {"mode": "ANY", "allowedFunctionNames": ["now"]}},
            })),
            after_hi(&[
                model(json!([
                    {"text": "hm", "thought": true},
                    {"text": "I read."},
                    {"text": "", "thoughtSignature": "AAAA"},
                    {"functionCall": {"name": "Read", "args": {}, "id": "a"},
                        "thoughtSignature": "AA=="},
                    call("b"),
                ])),
                user(json!([response("a"), response("b"), {"text": "and another thing"}])),
                model(json!([call_r, call_r])),
                user(json!([response_r, response_r])),
                model(json!([{"text": "Done."}])),
                user(json!([{"text": "look"},
                    {"inlineData": {"mimeType": "image/png", "data": "AA=="}}])),
            ]),
        ],
    )
    .await;
}

/// SPEC M9: a call comes back with the signature that it came with, and no other.
#[tokio::test]
async fn google_knows_its_own_signatures() {
    let server = ScriptedModel::start_with(|_: &RecordedRequest| {
        Turn::new().thinking("deep").call("Read", json!({})).call("Read", json!({}))
    })
    .await
    .unwrap();
    let events = ask(&server, GOOGLE, &asking(GOOGLE, "hi")).await.events();
    let part = |index: usize| events[index]["candidates"][0]["content"]["parts"][0].clone();
    let (thought, signed, plain) = (part(0), part(1), part(2));
    assert_eq!(thought, json!({"text": "deep", "thought": true}));
    assert!(plain.get("thoughtSignature").is_none(), "{plain}");
    let id = |part: &Value| part["functionCall"]["id"].as_str().unwrap().to_owned();
    let results = user(json!([response(&id(&signed)), response(&id(&plain))]));
    let replay = async |signature: Value, rest: &[Value]| {
        let mut call = signed.clone();
        call["thoughtSignature"] = signature;
        if call["thoughtSignature"].is_null() {
            call.as_object_mut().unwrap().remove("thoughtSignature");
        }
        let turn = [model(json!([call, plain])), results.clone()];
        let answer = ask(&server, GOOGLE, &after_hi(&[&turn, rest].concat())).await;
        (answer.status, answer.text())
    };
    let signature = signed["thoughtSignature"].clone();
    assert_eq!(replay(signature.clone(), &[]).await.0, 200);
    let (status, text) = replay(Value::Null, &[]).await;
    let missing = format!("the function call {} is missing a thought_signature", id(&signed));
    assert!(status == 400 && text.contains(&missing), "{text}");
    let (status, text) = replay(json!("AAAA"), &[]).await;
    assert!(status == 400 && text.contains("thought signature is not valid"), "{text}");
    // What Gemini takes for a call that another model made.
    assert_eq!(replay(json!("skip_thought_signature_validator"), &[]).await.0, 200);
    // Only what comes behind the user's last words is held to it.
    let rest = [model(json!([{"text": "Done."}])), hi()];
    assert_eq!(replay(Value::Null, &rest).await.0, 200);
    assert_eq!(replay(json!("AAAA"), &rest).await.0, 400);
}

#[tokio::test]
async fn google_is_read_as_a_conversation() {
    let server = ScriptedModel::start(scripted_model::hello()).await.unwrap();
    let failed = json!({"functionResponse": {"id": "b", "name": "Read",
        "response": {"error": "no such file"}}});
    let mut body = after_hi(&[
        model(json!([{"text": "hm", "thought": true}, {"text": "I read."}, call("a"), call("b")])),
        user(json!([response("a"), failed, {"text": "and another thing"}])),
    ]);
    body["systemInstruction"] = json!({"parts": [{"text": "rules"}, {"text": "and more"}]});
    body["tools"] = json!([{"functionDeclarations": [{"name": "Read"}]}]);
    let path = GOOGLE.replace("/m:", "/gemini-3-pro:");
    let bytes = body.to_string();
    let exchange = Exchange::open(&server, "POST", &path, headers(GOOGLE), bytes.as_bytes()).await;
    assert_eq!(exchange.response().await.status, 200);
    let seen = server.requests()[0].conversation();
    assert_eq!((seen.model.as_str(), seen.messages, seen.answers()), ("gemini-3-pro", 3, 1));
    assert_eq!(
        (seen.system.as_str(), seen.tools.clone()),
        ("rules\nand more", vec!["Read".into()])
    );
    let [hi, Entry::Assistant { text, calls }, rest @ ..] = &seen.entries[..] else {
        panic!("{:?}", seen.entries);
    };
    assert_eq!(*hi, Entry::User { text: "hi".to_owned() });
    assert_eq!((text.as_str(), calls.len()), ("I read.", 2));
    let result = |id: &str, text: &str, is_error: bool| Entry::Result {
        call_id: id.to_owned(),
        text: text.to_owned(),
        is_error: Some(is_error),
    };
    assert_eq!(
        *rest,
        [
            result("a", "ok", false),
            result("b", "no such file", true),
            Entry::User { text: "and another thing".to_owned() },
        ]
    );
}

#[tokio::test]
async fn google_needs_a_key_and_events() {
    let server =
        ScriptedModel::start_with(|_: &RecordedRequest| Turn::text_only("ok")).await.unwrap();
    let post = async |path: &str, headers: &[(&str, &str)]| {
        let body = asking(GOOGLE, "hi").to_string();
        Exchange::open(&server, "POST", path, headers, body.as_bytes()).await.response().await
    };
    for wrong in [&[][..], &[("authorization", "Bearer k")], &[("x-goog-api-key", " ")]] {
        let response = post(GOOGLE, wrong).await;
        assert_eq!(
            (response.status, response.json()),
            (
                403,
                json!({"error": {"code": 403, "status": "PERMISSION_DENIED", "message":
                    "the method does not allow callers without an identity, a key belongs in the \
                     x-goog-api-key header"}})
            )
        );
    }
    assert_eq!(post(&format!("{GOOGLE}&key=k"), &[]).await.status, 200);
    assert_eq!(post(&format!("{GOOGLE}&key="), &[]).await.status, 403);
    let bare = post(GOOGLE.strip_suffix("?alt=sse").unwrap(), headers(GOOGLE)).await;
    assert_eq!(
        (bare.status, bare.json()["error"]["status"].clone()),
        (400, json!("INVALID_ARGUMENT"))
    );
    // A refusal of a body says where it is wrong.
    let refused = ask(&server, GOOGLE, &google(json!({"contents": []}))).await;
    assert_eq!(
        refused.json(),
        json!({"error": {"code": 400, "status": "INVALID_ARGUMENT",
            "message": "contents: contents is not specified",
            "details": [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations":
                [{"field": "contents", "description": "contents is not specified"}]}]}})
    );
}
