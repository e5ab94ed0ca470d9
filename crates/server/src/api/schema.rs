//! JSON schemas of arguments and results, generated from their types, without `$ref`, because not every client resolves references.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

/// Schema of the arguments of an operation: an object with a type per argument. Like `parameters`, it refuses unknown arguments.
pub fn input<P: JsonSchema>() -> Value {
    let mut schema = generate::<P>(SchemaSettings::draft2020_12().with_transform(OptionalByAbsence));
    // Some clients refuse an object schema without these two members, even for an operation without arguments.
    if let Some(members) = schema.as_object_mut() {
        members.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        members.insert("additionalProperties".into(), Value::Bool(false));
    }
    schema
}

pub fn output<A: JsonSchema>() -> Value {
    generate::<A>(SchemaSettings::draft2020_12().for_serialize())
}

fn generate<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let generator = settings.with(|settings| settings.inline_subschemas = true).into_generator();
    let mut schema = generator.into_root_schema_for::<T>();
    for unneeded in ["$schema", "title"] {
        schema.remove(unneeded);
    }
    WithoutFormat.transform(&mut schema);
    schema.to_value()
}

/// Removes `null` from the types of arguments, because a null argument means the same as an omitted one. Inside of an argument, null has a
/// meaning and is not removed.
#[derive(Debug, Clone)]
struct OptionalByAbsence;

impl Transform for OptionalByAbsence {
    fn transform(&mut self, schema: &mut Schema) {
        let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
        for property in properties.into_iter().flat_map(Map::values_mut) {
            if let Ok(property) = property.try_into() {
                without_null(property);
            }
        }
    }
}

fn without_null(schema: &mut Schema) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(choices)) = schema.get_mut("enum") {
        choices.retain(|choice| !choice.is_null());
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
        if let [only] = choices.as_mut_slice() {
            let only = only.take();
            schema.remove("anyOf");
            if let Value::Object(members) = only {
                for (name, member) in members {
                    schema.as_object_mut().map(|object| object.entry(name).or_insert(member));
                }
            }
        }
    }
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
}

/// Removes `format`, which names Rust's number types.
#[derive(Debug, Clone)]
struct WithoutFormat;

impl Transform for WithoutFormat {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        schema.remove("format");
    }
}
