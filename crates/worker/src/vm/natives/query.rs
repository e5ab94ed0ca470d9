//! The format application/x-www-form-urlencoded of `URLSearchParams`. Names and values alternate in one list.

use super::throw_range_error;
use url::form_urlencoded;

/// `parseQuery(text)`.
pub fn parse<'s>(scope: &mut v8::PinScope<'s, '_>, arguments: &v8::FunctionCallbackArguments<'s>, answer: &mut v8::ReturnValue<'_>) {
    let text = arguments.get(0).to_rust_string_lossy(scope);
    let mut values: Vec<v8::Local<v8::Value>> = Vec::new();
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        // Neither exceeds V8's maximum string length, because the text does not.
        for piece in [name, value] {
            values.extend(v8::String::new(scope, &piece).map(v8::Local::<v8::Value>::from));
        }
    }
    answer.set(v8::Array::new_with_elements(scope, &values).into());
}

/// `formatQuery(list)`.
pub fn format<'s>(scope: &mut v8::PinScope<'s, '_>, arguments: &v8::FunctionCallbackArguments<'s>, answer: &mut v8::ReturnValue<'_>) {
    let Ok(list) = v8::Local::<v8::Array>::try_from(arguments.get(0)) else { return };
    let mut text = form_urlencoded::Serializer::new(String::new());
    for index in (0..list.length()).step_by(2) {
        let (Some(name), Some(value)) = (list.get_index(scope, index), list.get_index(scope, index + 1)) else { return };
        text.append_pair(&name.to_rust_string_lossy(scope), &value.to_rust_string_lossy(scope));
    }
    match v8::String::new(scope, &text.finish()) {
        Some(text) => answer.set(text.into()),
        None => throw_range_error(scope, "Invalid string length"),
    }
}
