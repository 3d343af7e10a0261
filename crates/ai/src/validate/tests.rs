use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "limit": {"type": ["integer", "null"], "minimum": 1},
            "ratio": {"type": "number"},
            "deep": {"type": "boolean"},
            "mode": {"enum": ["read", "write"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "counts": {"type": "array", "items": {"type": "integer"}},
            "edits": {"type": "array", "items": {"$ref": "#/$defs/Edit"}},
            "options": {"anyOf": [{"$ref": "#/$defs/Options"}, {"type": "null"}]},
        },
        "required": ["path"],
        "additionalProperties": false,
        "$defs": {
            "Edit": {
                "type": "object",
                "properties": {"old": {"type": "string"}, "count": {"type": "integer"}},
                "required": ["old"],
            },
            "Options": {
                "type": "object",
                "properties": {"retries": {"type": "integer"}},
                "required": ["retries"],
            },
        },
    })
}

fn run(arguments: &Value) -> (Result<Vec<String>, InvalidArguments>, Value) {
    static VALIDATOR: LazyLock<ArgumentValidator> =
        LazyLock::new(|| ArgumentValidator::new(&schema()).unwrap());
    let mut arguments = arguments.as_object().unwrap().clone();
    let result = VALIDATOR.validate(&mut arguments);
    (result, Value::Object(arguments))
}

/// SPEC M19
#[test]
fn lossless_corrections_are_made_and_said() {
    for (given, corrected, notes) in [
        (
            json!({"path": "a", "limit": "42", "ratio": "1.50", "deep": "true"}),
            json!({"path": "a", "limit": 42, "ratio": 1.5, "deep": true}),
            vec![
                r#"`/limit`: string "42" was taken as integer 42"#,
                r#"`/ratio`: string "1.50" was taken as number 1.5"#,
                r#"`/deep`: string "true" was taken as boolean true"#,
            ],
        ),
        (
            json!({"path": 7}),
            json!({"path": "7"}),
            vec![r#"`/path`: number 7 was taken as string "7""#],
        ),
        (
            json!({"path": "a", "edits": {"old": "x", "count": "2"}}),
            json!({"path": "a", "edits": [{"old": "x", "count": 2}]}),
            vec![
                r#"`/edits`: object {"old":"x","count":"2"} was taken as array [{"old":"x","count":"2"}]"#,
                r#"`/edits/0/count`: string "2" was taken as integer 2"#,
            ],
        ),
        (
            json!({"path": "a", "edits": r#"[{"old": "x"}]"#}),
            json!({"path": "a", "edits": [{"old": "x"}]}),
            vec![r#"`/edits`: string "[{\"old\": \"x\"}]" was taken as array [{"old":"x"}]"#],
        ),
        (
            json!({"path": "a", "tags": "one"}),
            json!({"path": "a", "tags": ["one"]}),
            vec![r#"`/tags`: string "one" was taken as array ["one"]"#],
        ),
        (
            json!({"path": "a", "deep": null, "limit": null}),
            json!({"path": "a", "limit": null}),
            vec!["`/deep`: null was taken as left out"],
        ),
        (
            json!({"path": "a", "options": {"retries": "3"}}),
            json!({"path": "a", "options": {"retries": 3}}),
            vec![r#"`/options/retries`: string "3" was taken as integer 3"#],
        ),
    ] {
        let (result, arguments) = run(&given);
        assert_eq!(result, Ok(notes.into_iter().map(str::to_owned).collect()), "{given}");
        assert_eq!(arguments, corrected);
        assert_eq!(
            run(&corrected),
            (Ok(vec![]), corrected),
            "a second time there is nothing to do"
        );
    }
}

/// SPEC M19
#[test]
fn what_does_not_fit_is_listed_and_left_as_it_was() {
    for (given, problems) in [
        (
            json!({"limit": "many", "mode": "erase", "extra": 1, "deep": "yes", "counts": [1, "x"]}),
            "- `/limit`: expected integer or null, got string \"many\"\n\
             - `/deep`: expected boolean, got string \"yes\"\n\
             - `/mode`: expected one of [\"read\",\"write\"], got string \"erase\"\n\
             - `/counts/1`: expected integer, got string \"x\"\n\
             - `/path`: expected a value, which is required, got nothing\n\
             - `/extra`: expected no property of this name, got number 1",
        ),
        (json!({"path": null}), "- `/path`: expected string, got null"),
        (json!({"path": true}), "- `/path`: expected string, got boolean true"),
        (
            json!({"path": "a", "limit": 0}),
            "- `/limit`: expected another value (value is less than the minimum of 1), got number 0",
        ),
        // Each of these would lose something or guess.
        (
            json!({"path": "a", "limit": "007"}),
            "- `/limit`: expected integer or null, got string \"007\"",
        ),
        (
            json!({"path": "a", "limit": "4.5"}),
            "- `/limit`: expected integer or null, got string \"4.5\"",
        ),
        (
            json!({"path": "a", "limit": ""}),
            "- `/limit`: expected integer or null, got string \"\"",
        ),
        (
            json!({"path": "a", "ratio": "0.1234567890123456789"}),
            "- `/ratio`: expected number, got string \"0.1234567890123456789\"",
        ),
        (json!({"path": "a", "ratio": "NaN"}), "- `/ratio`: expected number, got string \"NaN\""),
        (json!({"path": "a", "deep": 1}), "- `/deep`: expected boolean, got number 1"),
        (
            json!({"path": "a", "edits": [{}]}),
            "- `/edits/0/old`: expected a value, which is required, got nothing",
        ),
        (
            json!({"path": "a", "options": {"retries": "x"}}),
            "- `/options`: expected either at `/retries` integer, or null, \
             got object {\"retries\":\"x\"}",
        ),
    ] {
        let (result, arguments) = run(&given);
        let error = result.unwrap_err().to_string();
        let mut lines: Vec<&str> = error.lines().skip(1).collect();
        lines.sort_unstable();
        let mut expected: Vec<&str> = problems.lines().collect();
        expected.sort_unstable();
        assert_eq!(lines, expected, "{given}");
        assert_eq!(arguments, given);
    }
}

#[test]
fn the_list_and_its_quotes_are_bounded() {
    let long = "é".repeat(10_000);
    let many: Map<String, Value> = (0..500).map(|at| (format!("x{at}"), json!(long))).collect();
    let (result, _) = run(&Value::Object(many));
    let error = result.unwrap_err();
    assert_eq!((error.problems.len(), error.omitted), (MAX_PROBLEMS, 481));
    assert!(error.to_string().len() < 10_000);
}

/// SPEC M19
#[test]
fn a_property_under_its_other_name_is_taken_where_it_is_missing() {
    let names = &[("text", "old"), ("before", "old"), ("file", "path")];
    let validator = ArgumentValidator::new(&schema()).unwrap().with_other_names(names);
    for (given, expected) in [
        (
            json!({"file": "a", "edits": [{"before": "x"}, {"old": "y", "text": "z"}]}),
            Ok((
                json!({"path": "a", "edits": [{"old": "x"}, {"old": "y", "text": "z"}]}),
                vec!["`/edits/0/before` was taken as `old`", "`/file` was taken as `path`"],
            )),
        ),
        // One of its own name stays, and another of a name that nothing has is still refused.
        (json!({"path": "a", "file": "b"}), Err("no property of this name")),
        (json!({"name": "a"}), Err("a value, which is required")),
    ] {
        let mut arguments = given.as_object().unwrap().clone();
        let result = validator.validate(&mut arguments);
        match (result, expected) {
            (Ok(notes), Ok((corrected, mut expected))) => {
                let mut notes: Vec<&str> = notes.iter().map(String::as_str).collect();
                notes.sort_unstable();
                expected.sort_unstable();
                assert_eq!((Value::Object(arguments), notes), (corrected, expected));
            }
            (Err(error), Err(expected)) => {
                assert!(error.problems.iter().any(|problem| problem.expected == expected));
                assert_eq!(Value::Object(arguments), given);
            }
            (result, expected) => panic!("{given}: {result:?}, expected {expected:?}"),
        }
    }
}

/// SPEC M19
#[test]
fn nothing_is_fetched_and_a_schema_that_is_none_is_refused() {
    for schema in [json!({"$ref": "https://example.com/x.json"}), json!({"type": "strin"})] {
        assert!(ArgumentValidator::new(&schema).is_err(), "{schema}");
    }
}

fn valid_arguments() -> impl Strategy<Value = Value> {
    let edit =
        ("[a-zé]{0,6}", proptest::option::of(any::<i64>())).prop_map(|(old, count)| match count {
            Some(count) => json!({"old": old, "count": count}),
            None => json!({"old": old}),
        });
    // Strings that look like other types are the interesting ones.
    let text = prop_oneof!["[a-zé~/]{0,6}", "[0-9]{1,3}", "true|false|null", r#"\[1\]|\{\}"#];
    (
        text.clone(),
        proptest::option::of(proptest::option::of(1..i64::MAX)),
        proptest::option::of(-1e9..1e9),
        proptest::option::of(proptest::collection::vec(text, 0..4)),
        proptest::option::of(proptest::collection::vec(edit, 0..3)),
        proptest::option::of(proptest::option::of(any::<i64>())),
    )
        .prop_map(|(path, limit, ratio, tags, edits, options)| {
            let mut fields = Map::new();
            fields.insert("path".into(), json!(path));
            let mut put = |name: &str, value: Option<Value>| {
                if let Some(value) = value {
                    fields.insert(name.into(), value);
                }
            };
            put("limit", limit.map(|limit| json!(limit)));
            put("ratio", ratio.map(|ratio: f64| json!(ratio)));
            put("tags", tags.map(|tags| json!(tags)));
            put("edits", edits.map(|edits| json!(edits)));
            put(
                "options",
                options.map(|retries| match retries {
                    Some(retries) => json!({"retries": retries}),
                    None => Value::Null,
                }),
            );
            Value::Object(fields)
        })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    /// SPEC M19
    #[test]
    fn valid_arguments_are_never_changed(arguments in valid_arguments()) {
        prop_assert_eq!(run(&arguments), (Ok(vec![]), arguments));
    }
}
