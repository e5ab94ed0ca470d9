//! Conversion between text and bytes according to the Encoding standard.

use super::{bytes_of, fill, uint8_array};
use encoding_rs::Encoding;

pub fn utf8_encode<'s>(scope: &mut v8::PinScope<'s, '_>, arguments: &v8::FunctionCallbackArguments<'s>, answer: &mut v8::ReturnValue<'_>) {
    let text = arguments.get(0).to_rust_string_lossy(scope);
    if let Some(bytes) = uint8_array(scope, text.as_bytes()) {
        answer.set(bytes.into());
    }
}

/// Returns `[read, written]`: UTF-16 code units read and bytes written.
pub fn utf8_encode_into<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    arguments: &v8::FunctionCallbackArguments<'s>,
    answer: &mut v8::ReturnValue<'_>,
) {
    let text = arguments.get(0).to_rust_string_lossy(scope);
    let room = v8::Local::<v8::ArrayBufferView>::try_from(arguments.get(1)).map_or(0, |view| view.byte_length());
    let fitting = &text[..text.floor_char_boundary(room)];
    fill(arguments.get(1), fitting.as_bytes());
    let counts = [fitting.encode_utf16().count(), fitting.len()].map(|count| v8::Number::new(scope, count as f64).into());
    answer.set(v8::Array::new_with_elements(scope, &counts).into());
}

pub fn name<'s>(scope: &mut v8::PinScope<'s, '_>, arguments: &v8::FunctionCallbackArguments<'s>, answer: &mut v8::ReturnValue<'_>) {
    let label = arguments.get(0).to_rust_string_lossy(scope);
    let name = Encoding::for_label(label.as_bytes()).and_then(|encoding| v8::String::new(scope, &encoding.name().to_lowercase()));
    if let Some(name) = name {
        answer.set(name.into());
    }
}

/// Returns the whole input as text, or undefined if it is malformed and `fatal`.
pub fn decode<'s>(scope: &mut v8::PinScope<'s, '_>, arguments: &v8::FunctionCallbackArguments<'s>, answer: &mut v8::ReturnValue<'_>) {
    let name = arguments.get(0).to_rust_string_lossy(scope);
    let Some(encoding) = Encoding::for_label(name.as_bytes()) else { return };
    let bytes = bytes_of(arguments.get(1));
    let (fatal, keep_bom) = (arguments.get(2).is_true(), arguments.get(3).is_true());
    let (text, malformed) = if keep_bom { encoding.decode_without_bom_handling(&bytes) } else { encoding.decode_with_bom_removal(&bytes) };
    if fatal && malformed {
        return;
    }
    if let Some(text) = v8::String::new(scope, &text) {
        answer.set(text.into());
    }
}
