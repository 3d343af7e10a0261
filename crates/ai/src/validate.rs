//! Arguments against a tool's JSON Schema.

use serde_json::{Map, Value};

/// A compiled schema.
pub struct ArgumentValidator(jsonschema::Validator);

/// Arguments that the schema does not allow.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct InvalidArguments(String);

impl ArgumentValidator {
    /// Compiles.
    ///
    /// # Errors
    /// When the schema is not one.
    pub fn new(schema: &Value) -> Result<Self, InvalidArguments> {
        jsonschema::validator_for(schema).map(Self).map_err(|e| InvalidArguments(e.to_string()))
    }

    /// Checks.
    ///
    /// # Errors
    /// When they do not fit.
    pub fn validate(
        &self,
        arguments: &mut Map<String, Value>,
    ) -> Result<Vec<String>, InvalidArguments> {
        let value = Value::Object(arguments.clone());
        self.0.validate(&value).map(|()| Vec::new()).map_err(|e| InvalidArguments(e.to_string()))
    }
}
