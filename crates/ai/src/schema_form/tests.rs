//! Each form's table, and what holds for every schema.

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[track_caller]
fn check(form: SchemaForm, schema: Value, expected: Value) {
    let reduced = tool_schema(&schema, form).unwrap_or(Value::Null);
    assert_eq!(reduced.to_string(), expected.to_string(), "{form:?} of {schema}");
}

/// A root with one property, `p`.
fn root(p: Value) -> Value {
    json!({"type": "object", "properties": {"p": p}})
}

/// SPEC M15
#[test]
fn a_root_becomes_an_object_with_properties() {
    let empty = json!({"type": "object", "properties": {}});
    let named =
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
    for (schema, expected) in [
        (json!({}), empty.clone()),
        (json!(true), empty.clone()),
        (json!(false), empty.clone()),
        (json!(null), empty.clone()),
        (json!("x"), empty.clone()),
        (json!({"type": "string"}), empty.clone()),
        (json!({"enum": ["a"]}), empty.clone()),
        (json!({"type": ["object", "null"]}), empty),
        (json!({"properties": {"a": {}}}), json!({"properties": {"a": {}}, "type": "object"})),
        // References.
        (
            json!({"$ref": "#/$defs/A", "$defs": {"A": named.clone()}}),
            json!({"$defs": {"A": named}, "type": "object", "properties": {"a": {"type": "string"}},
                "required": ["a"]}),
        ),
        (json!({"$ref": "#"}), json!({"type": "object", "properties": {}})),
        (
            json!({"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}),
            json!({"type": "object", "properties": {"a": {}}}),
        ),
        (
            json!({"allOf": [{"$ref": "#/definitions/A"}, {"required": ["b"]}], "definitions": {
                "A": {"properties": {"a": {"type": "null"}}, "required": ["a"]}}}),
            json!({"definitions": {"A": {"properties": {"a": {"type": "null"}}, "required": ["a"]}},
                "type": "object", "properties": {"a": {"type": "null"}}, "required": ["a", "b"]}),
        ),
        // Unions: all properties, and required is what all require.
        (
            json!({"type": "object", "description": "d", "oneOf": [
                {"properties": {"kind": {"const": "a"}, "x": {"type": "string"}},
                    "required": ["kind", "x"]},
                {"properties": {"kind": {"const": "b"}, "y": true}, "required": ["kind"]},
                {"type": "null"},
            ]}),
            json!({"type": "object", "description": "d", "properties": {
                "kind": {"anyOf": [{"const": "a"}, {"const": "b"}]},
                "x": {"type": "string"},
                "y": {},
            }, "required": ["kind"]}),
        ),
        (
            json!({"properties": {"a": {"type": "string"}}, "required": ["a"],
                "anyOf": [{"required": ["a", "b"]}, {"required": ["c"]}]}),
            json!({"properties": {"a": {"type": "string"}}, "required": ["a"], "type": "object"}),
        ),
    ] {
        check(SchemaForm::JsonSchema, schema, expected);
    }
}

/// SPEC M15
#[test]
fn old_and_broken_words_become_plain_ones() {
    for (p, expected) in [
        (json!(true), json!({})),
        (json!(false), json!({"not": {}})),
        (json!(1), json!({})),
        (
            json!({"$schema": "s", "$id": "i", "$comment": "c", "type": "string", "x-own": {"$id": 1}}),
            json!({"type": "string", "x-own": {"$id": 1}}),
        ),
        // Data is no schema.
        (
            json!({"default": {"$schema": "s"}, "enum": [{"$id": 1}], "examples": [{"$ref": 1}]}),
            json!({"default": {"$schema": "s"}, "enum": [{"$id": 1}], "examples": [{"$ref": 1}]}),
        ),
        // Properties may have any name.
        (
            json!({"properties": {"$schema": {"type": "string"}, "$ref": {"$id": "x"}}}),
            json!({"properties": {"$schema": {"type": "string"}, "$ref": {}}}),
        ),
        (
            json!({"minimum": 1, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false}),
            json!({"exclusiveMinimum": 1, "maximum": 9}),
        ),
        (
            json!({"items": [{"type": "string"}, true], "additionalItems": false}),
            json!({"prefixItems": [{"type": "string"}, {}], "items": {"not": {}}}),
        ),
        (json!({"type": ["string"]}), json!({"type": "string"})),
        (json!({"type": ["null", "string", "null"]}), json!({"type": ["null", "string"]})),
        (json!({"type": "text"}), json!({})),
        (json!({"type": ["text", "null"]}), json!({})),
        (json!({"type": []}), json!({})),
        (json!({"required": true, "minLength": -1, "enum": [], "anyOf": []}), json!({})),
        (json!({"required": ["a", "a", 1]}), json!({"required": ["a"]})),
        (json!({"additionalProperties": true}), json!({"additionalProperties": true})),
        (json!({"additionalProperties": {"$id": "x"}}), json!({"additionalProperties": {}})),
        (json!({"$ref": "https://host/x.json", "title": "t"}), json!({"title": "t"})),
        (json!({"$ref": "#/nowhere"}), json!({})),
        (json!({"$ref": 1}), json!({})),
        (json!({"$dynamicRef": "#x", "$dynamicAnchor": "x"}), json!({})),
        (json!({"$defs": {"A": {}}}), json!({})),
    ] {
        check(SchemaForm::JsonSchema, root(p), root(expected));
    }
}

/// SPEC M15
#[test]
fn references_stay_or_are_replaced() {
    let tree = json!({"type": "object", "properties": {
        "label": {"type": "string"},
        "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
    }});
    let schema = json!({"type": "object", "properties": {
        "tree": {"description": "d", "$ref": "#/$defs/Tree"},
        "label": {"$ref": "#/$defs/Tree/properties/label"},
        "all": {"$ref": "#"},
    }, "$defs": {"Tree": tree, "A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}});
    let cut = json!({"description": "d", "type": "object", "properties": {
        "label": {"type": "string"},
        "children": {"type": "array", "items": {"type": "object"}},
    }});
    check(
        SchemaForm::JsonSchema,
        schema.clone(),
        json!({"type": "object", "properties": {
            "tree": {"description": "d", "$ref": "#/$defs/Tree"},
            "label": {"type": "string"},
            "all": {"$ref": "#"},
        }, "$defs": schema["$defs"]}),
    );
    let mut all = cut.clone();
    all.as_object_mut().unwrap().shift_remove("description");
    check(
        SchemaForm::NoReferences,
        schema.clone(),
        json!({"type": "object", "properties": {
            "tree": cut,
            "label": {"type": "string"},
            "all": {"type": "object", "properties": {
                "tree": cut, "label": {"type": "string"}, "all": {"type": "object"},
            }},
        }}),
    );
    // Two that lead to each other and nowhere else.
    check(
        SchemaForm::NoReferences,
        json!({"properties": {"p": {"$ref": "#/$defs/A"}}, "$defs": schema["$defs"], "type": "object"}),
        json!({"properties": {"p": {}}, "type": "object"}),
    );
}

/// SPEC M15
#[test]
fn openapi_has_one_type_and_nullable() {
    let anything = json!({"anyOf": [
        {"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "object"},
    ]});
    for (p, expected) in [
        (json!({"type": ["string", "null"]}), json!({"type": "string", "nullable": true})),
        (
            json!({"description": "d", "type": ["string", "integer"], "minLength": 1, "minimum": 2}),
            json!({"anyOf": [{"type": "string", "minLength": 1, "description": "d"},
                {"type": "integer", "minimum": 2}]}),
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "null"}], "description": "d", "default": null}),
            json!({"type": "string", "description": "d", "nullable": true}),
        ),
        (
            json!({"title": "t", "oneOf": [{"type": "string"}, {"anyOf": [{"type": "boolean"},
                {"type": "null"}]}, {"type": "string"}]}),
            json!({"anyOf": [{"type": "string", "nullable": true}, {"type": "boolean"}]}),
        ),
        (json!({"type": "null"}), json!({"type": "null"})),
        (json!({"anyOf": [{"type": "null"}]}), json!({"type": "null"})),
        (json!({"type": "string", "nullable": true}), json!({"type": "string", "nullable": true})),
        // A choice beside a type: the type says it, or the object has all of it.
        (json!({"type": "string", "anyOf": [{"minLength": 1}]}), json!({"type": "string"})),
        (
            json!({"type": "object", "oneOf": [
                {"properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"properties": {"b": {"type": "null"}}}]}),
            json!({"type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "null"}}}),
        ),
        (
            json!({"allOf": [{"type": "object", "properties": {"a": {"const": "x"}}},
                {"required": ["a", "b"]}]}),
            json!({"type": "object",
                "properties": {"a": {"enum": ["x"], "type": "string"}}, "required": ["a"]}),
        ),
        // Lists of values.
        (json!({"const": "x"}), json!({"enum": ["x"], "type": "string"})),
        (json!({"enum": ["x", null]}), json!({"enum": ["x"], "type": "string", "nullable": true})),
        (
            json!({"enum": ["", "x"]}),
            json!({"type": "string", "description": "One of: \"\", \"x\""}),
        ),
        (
            json!({"type": "integer", "description": "d", "enum": [1, 2]}),
            json!({"type": "integer", "description": "d\n\nOne of: 1, 2"}),
        ),
        (
            json!({"enum": ["a", 1]}),
            json!({"anyOf": [{"enum": ["a"], "type": "string"},
                {"type": "integer", "description": "One of: 1"}]}),
        ),
        // Nodes without a type.
        (
            json!({"properties": {"a": {"type": "string"}}}),
            json!({
            "properties": {"a": {"type": "string"}}, "type": "object"}),
        ),
        (
            json!({"items": {"type": "string"}}),
            json!({"items": {"type": "string"}, "type": "array"}),
        ),
        (json!({"minimum": 1}), json!({"minimum": 1, "type": "number"})),
        (json!({"pattern": "^a$"}), json!({"pattern": "^a$", "type": "string"})),
        (
            json!({"description": "d"}),
            json!({"anyOf": [{"type": "string", "description": "d"},
            {"type": "number"}, {"type": "boolean"}, {"type": "object"}]}),
        ),
        (json!(true), anything.clone()),
        (json!({"type": "array"}), json!({"type": "array", "items": anything})),
        (
            json!({"items": [{"type": "string"}, {"type": "integer"}], "additionalItems": false}),
            json!({"items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}, "type": "array"}),
        ),
        // What is not known.
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}, "properties": {},
                "patternProperties": {"x": {}}, "required": ["a"]}),
            json!({"type": "object"}),
        ),
        (
            json!({"type": "integer", "exclusiveMinimum": 0, "multipleOf": 2, "maximum": 9,
                "format": "int64"}),
            json!({"type": "integer", "maximum": 9, "format": "int64"}),
        ),
        (json!({"type": "string", "format": "uri", "pattern": "(?!x)"}), json!({"type": "string"})),
        (
            json!({"type": "string", "format": "date-time"}),
            json!({"type": "string", "format": "date-time"}),
        ),
    ] {
        check(SchemaForm::OpenApi, root(p), root(expected));
    }
    // What can never be is not offered.
    check(
        SchemaForm::OpenApi,
        json!({"type": "object", "properties": {"a": false, "b": {"type": "null"}},
            "required": ["a", "b"], "additionalProperties": false, "$schema": "s"}),
        json!({"type": "object", "properties": {"b": {"type": "null"}}, "required": ["b"]}),
    );
    // A root without properties is refused, and not needed.
    check(SchemaForm::OpenApi, json!({"type": "object"}), Value::Null);
    assert_eq!(
        required_tool_schema(&json!({}), SchemaForm::OpenApi),
        json!({"type": "object", "properties": {}})
    );
}

/// SPEC M15
#[test]
fn grammars_have_no_patterns_and_no_node_without_a_type() {
    let all = json!(["string", "number", "boolean", "object", "array", "null"]);
    for (p, expected) in [
        (
            json!({"type": "string", "pattern": "\\S", "minLength": 1, "maxLength": 2000}),
            json!({"type": "string", "minLength": 1}),
        ),
        (json!({"description": "d"}), json!({"description": "d", "type": all})),
        (json!({"minItems": 1}), json!({"minItems": 1, "type": "array"})),
        (json!({"const": 1}), json!({"const": 1})),
        (
            json!({"anyOf": [{"items": {"pattern": "x"}}, true]}),
            json!({"anyOf": [{"items": {"type": all}, "type": "array"}, {"type": all}]}),
        ),
        (
            json!({"properties": {"pattern": {"type": "null"}}}),
            json!({
            "properties": {"pattern": {"type": "null"}}, "type": "object"}),
        ),
    ] {
        check(SchemaForm::Grammar, root(p), root(expected));
    }
    // Circles stay where the host can follow them.
    let circle = json!({"type": "object", "properties": {"p": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"type": "array", "items": {"$ref": "#/$defs/A"}}}});
    check(SchemaForm::Grammar, circle.clone(), circle);
    check(
        SchemaForm::Grammar,
        root(json!({"$ref": "#"})),
        root(json!({"type": "object", "properties": {"p": {"type": "object"}}})),
    );
}

/// SPEC M15
#[test]
fn strict_is_for_closed_objects_that_require_all_they_have() {
    fn closed(properties: Value) -> Value {
        let required: Vec<&String> = properties.as_object().unwrap().keys().collect();
        json!({"type": "object", "required": required, "additionalProperties": false,
            "properties": properties})
    }
    let mut deep = json!({"type": "string"});
    for _ in 0..6 {
        deep = closed(json!({"p": deep}));
    }
    let many = (0..101).map(|n| (n.to_string(), json!({"type": "null"}))).collect();
    for (schema, expected) in [
        (closed(json!({})), true),
        (json!({"$schema": "s", "required": [], "additionalProperties": false}), true),
        (closed(json!({"a": {"type": "string", "description": "d", "enum": ["x"]}})), true),
        (closed(json!({"a": {"type": ["string", "null"]}})), true),
        (closed(json!({"a": {"type": "array", "items": {"type": "integer"}}})), true),
        (closed(json!({"a": closed(json!({"b": {"type": "null"}}))})), true),
        (closed(json!({"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}})), true),
        (closed(json!({"a": {"$ref": "#"}})), true),
        // Open, or with a choice to leave out.
        (json!({}), false),
        (json!({"additionalProperties": false}), false),
        (json!({"properties": {"a": {"type": "null"}}, "required": ["a"]}), false),
        (json!({"properties": {"a": {"type": "null"}}, "additionalProperties": false}), false),
        (closed(json!({"a": {"type": "object", "properties": {}}})), false),
        (closed(json!({"a": {"type": ["object", "null"]}})), false),
        // Words that strict mode does not know, or not everywhere.
        (closed(json!({"a": {}})), false),
        (closed(json!({"a": {"enum": ["x"]}})), false),
        (closed(json!({"a": {"type": "array"}})), false),
        (closed(json!({"a": {"type": "integer", "minimum": 1}})), false),
        (closed(json!({"a": {"type": "string", "default": "x"}})), false),
        (closed(json!({"a": {"oneOf": [{"type": "string"}]}})), false),
        (closed(json!({"a": {"$ref": "#", "description": "d"}})), false),
        // Too much.
        (deep, false),
        (closed(Value::Object(many)), false),
        (closed(json!({"a": {"type": "string", "enum": vec!["x"; 501]}})), false),
        (closed(json!({"a": {"type": "string", "const": "x".repeat(15_001)}})), false),
    ] {
        let plain = required_tool_schema(&schema, SchemaForm::JsonSchema);
        assert_eq!(allows_strict(&plain), expected, "{schema}");
    }
}

/// SPEC M15: what a page of references stands for may be larger than any machine.
#[test]
fn no_schema_makes_a_form_without_bounds() {
    let definitions: Map<String, Value> = (0..60)
        .map(|n| {
            let next = json!({"$ref": format!("#/$defs/{}", n + 1)});
            (
                n.to_string(),
                json!({"anyOf": [next, next, {"items": next, "description": "long ".repeat(99)}]}),
            )
        })
        .collect();
    let wide = json!({"$ref": "#/$defs/0", "$defs": definitions});
    let everything: Vec<Value> = (0..40).map(|n| json!({"$ref": format!("#/$defs/{n}")})).collect();
    let circles: Map<String, Value> =
        (0..40).map(|n| (n.to_string(), json!({"anyOf": everything}))).collect();
    let circles = json!({"properties": {"p": {"$ref": "#/$defs/0"}}, "$defs": circles,
        "allOf": everything});
    let mut deep = json!({"type": "string"});
    for _ in 0..100 {
        deep = json!({"properties": {"p": deep}});
    }
    for schema in [wide, circles, deep] {
        for form in FORMS {
            let reduced = tool_schema(&schema, form).map_or(0, |it| it.to_string().len());
            assert!(reduced < 8_000_000, "{form:?} has {reduced}");
        }
    }
}

const FORMS: [SchemaForm; 4] =
    [SchemaForm::JsonSchema, SchemaForm::NoReferences, SchemaForm::OpenApi, SchemaForm::Grammar];

/// Schemas as they come: valid ones of today's draft.
fn schema() -> impl Strategy<Value = Value> {
    let reference = prop_oneof![
        Just("#"),
        Just("#/$defs/A"),
        Just("#/$defs/B"),
        Just("#/properties/a"),
        Just("#/none"),
    ];
    let leaf = prop_oneof![
        Just(json!({})),
        any::<bool>().prop_map(Value::from),
        kinds().prop_map(|kinds| json!({"type": kinds})),
        Just(json!({"type": "string", "minLength": 1, "pattern": "^a", "format": "uri"})),
        Just(json!({"type": "integer", "exclusiveMinimum": 0, "maximum": 3})),
        Just(json!({"minimum": 1, "description": "d", "title": "t"})),
        value().prop_map(|value| json!({"const": value})),
        proptest::collection::vec(value(), 1..4).prop_map(|values| json!({"enum": values})),
        reference.prop_map(|reference| json!({"$ref": reference, "description": "r"})),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let named = proptest::collection::btree_map("[abc]", inner.clone(), 0..3);
        let some = proptest::collection::vec(inner.clone(), 1..3);
        let required = proptest::collection::btree_set("[abc]", 0..2);
        prop_oneof![
            (named.clone(), required, any::<Option<bool>>(), proptest::option::of(kinds()))
                .prop_map(|(properties, required, open, kinds)| {
                    let mut schema = json!({"properties": properties, "required": required});
                    if let Some(open) = open {
                        schema["additionalProperties"] = open.into();
                    }
                    if let Some(kinds) = kinds {
                        schema["type"] = kinds;
                    }
                    schema
                }),
            inner.clone().prop_map(|items| json!({"type": "array", "items": items, "minItems": 1})),
            some.clone().prop_map(|items| json!({"prefixItems": items, "items": false})),
            (prop_oneof![Just("anyOf"), Just("oneOf"), Just("allOf")], some, any::<bool>())
                .prop_map(|(word, parts, typed)| {
                    let mut schema = json!({word: parts, "description": "d"});
                    if typed {
                        schema["type"] = "object".into();
                    }
                    schema
                }),
            inner.prop_map(|values| json!({"type": "object", "additionalProperties": values})),
        ]
    })
}

fn kinds() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!("string")),
        Just(json!("object")),
        Just(json!("array")),
        Just(json!("null")),
        Just(json!(["string", "null"])),
        Just(json!(["integer", "object", "array", "null"])),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(1)),
        Just(json!(2.5)),
        Just(json!("")),
        Just(json!("a")),
        Just(json!({})),
        Just(json!([])),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map("[abc]", inner, 0..3).prop_map(|it| json!(it)),
        ]
    })
}

/// A root that may be anything, with definitions.
fn whole_schema() -> impl Strategy<Value = Value> {
    (schema(), schema(), schema()).prop_map(|(root, a, b)| {
        let mut root = if root.is_object() { root } else { json!({"properties": {"a": root}}) };
        root["$defs"] = json!({"A": a, "B": b});
        root["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        root
    })
}

/// Every schema in a form, with what `check` says of each.
fn check_each(schema: &Value, check: &impl Fn(&Map<String, Value>)) {
    let fields = schema.as_object().unwrap();
    check(fields);
    for (keyword, value) in fields {
        match keyword.as_str() {
            "properties" | "$defs" => {
                value.as_object().unwrap().values().for_each(|it| check_each(it, check));
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                value.as_array().unwrap().iter().for_each(|it| check_each(it, check));
            }
            "items" | "not" => check_each(value, check),
            "additionalProperties" if value.is_object() => check_each(value, check),
            _ => {}
        }
    }
}

/// What OpenAPI's subset may have, and how.
fn is_openapi(fields: &Map<String, Value>) {
    const FIELDS: [&str; 18] = [
        "type",
        "format",
        "title",
        "description",
        "nullable",
        "enum",
        "maxItems",
        "minItems",
        "properties",
        "required",
        "minProperties",
        "maxProperties",
        "minLength",
        "maxLength",
        "pattern",
        "default",
        "items",
        "minimum",
    ];
    if fields.contains_key("anyOf") {
        assert_eq!(fields.len(), 1, "{fields:?}");
        assert!(fields["anyOf"].as_array().unwrap().len() > 1, "{fields:?}");
        return;
    }
    for keyword in fields.keys() {
        assert!(FIELDS.contains(&keyword.as_str()) || keyword == "maximum", "{keyword}");
    }
    let kind = fields["type"].as_str().unwrap();
    assert_eq!(fields.contains_key("items"), kind == "array", "{fields:?}");
    if let Some(values) = fields.get("enum") {
        let values = values.as_array().unwrap();
        assert!(kind == "string" && !values.is_empty());
        assert!(values.iter().all(|value| value.as_str().is_some_and(|text| !text.is_empty())));
    }
    let properties = fields.get("properties").map(|it| it.as_object().unwrap());
    assert!(properties.is_none_or(|it| kind == "object" && !it.is_empty()));
    for name in fields.get("required").into_iter().flat_map(|it| it.as_array().unwrap()) {
        assert!(properties.unwrap().contains_key(name.as_str().unwrap()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(192) })]

    /// SPEC M15
    #[test]
    fn every_form_has_only_what_is_taken_and_is_its_own_form(schema in whole_schema()) {
        for form in FORMS {
            let Some(reduced) = tool_schema(&schema, form) else {
                prop_assert_eq!(form, SchemaForm::OpenApi);
                continue;
            };
            let again = tool_schema(&reduced, form).unwrap_or(Value::Null);
            prop_assert_eq!(again.to_string(), reduced.to_string(), "{:?} of {}", form, &schema);
            prop_assert_eq!(&reduced["type"], "object");
            prop_assert!(!["anyOf", "oneOf", "allOf", "$ref", "not", "enum", "const"]
                .iter().any(|word| reduced.get(*word).is_some()), "{}", &reduced);
            match form {
                SchemaForm::JsonSchema => check_each(&reduced, &|it| assert!(!it.contains_key("$schema"))),
                SchemaForm::NoReferences => check_each(&reduced, &|fields| {
                    assert!(!fields.contains_key("$ref") && !fields.contains_key("$defs"));
                }),
                SchemaForm::OpenApi => check_each(&reduced, &is_openapi),
                SchemaForm::Grammar => check_each(&reduced, &|fields| {
                    assert!(!fields.contains_key("pattern"));
                    assert!(grammar::TELLING.iter().any(|word| fields.contains_key(*word)));
                }),
            }
        }
    }

    /// SPEC M15: what a tool takes may still be said in its form. Joined unions, values in words and
    /// implied types are told by the tables.
    #[test]
    fn a_form_demands_no_more_than_its_schema(a in schema(), b in schema(), value in value()) {
        let schema = json!({"type": "object", "properties": {"a": a}, "$defs": {"A": b, "B": true}});
        let arguments = json!({"a": value});
        // A reference that leads nowhere is no schema.
        let Ok(validator) = jsonschema::validator_for(&schema) else { return Ok(()) };
        if validator.is_valid(&arguments) {
            for form in [SchemaForm::JsonSchema, SchemaForm::NoReferences] {
                let reduced = tool_schema(&schema, form).unwrap();
                let validator = jsonschema::validator_for(&reduced).unwrap();
                prop_assert!(validator.is_valid(&arguments), "{:?} {} of {}", form, &reduced, &schema);
            }
        }
    }
}
