//! JSON schemas of arguments and answers, made from their types: whole, without references, as every client understands them.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// An argument that is left out and one that is null are the same, so the schema only speaks of what it is when given.
pub fn input<P: JsonSchema>() -> Value {
    generate::<P>(SchemaSettings::draft2020_12().with_transform(WithoutNull))
}

pub fn output<A: JsonSchema>() -> Value {
    generate::<A>(SchemaSettings::draft2020_12().for_serialize())
}

fn generate<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let generator = settings.with(|settings| settings.inline_subschemas = true).into_generator();
    let mut schema = generator.into_root_schema_for::<T>();
    for noise in ["$schema", "title"] {
        schema.remove(noise);
    }
    WithoutFormat.transform(&mut schema);
    schema.to_value()
}

/// Takes `null` out of types.
#[derive(Debug, Clone)]
struct WithoutNull;

impl Transform for WithoutNull {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
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
}

/// Takes out names of Rust's number types, which mean nothing elsewhere.
#[derive(Debug, Clone)]
struct WithoutFormat;

impl Transform for WithoutFormat {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        schema.remove("format");
    }
}
