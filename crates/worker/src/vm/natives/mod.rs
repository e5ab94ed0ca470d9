//! The native functions of the base heap's private `host` object.
//!
//! Heaps refer to them by their index in [`NATIVES`], through one external reference. So natives are only ever appended to the list: the indices
//! in older heaps stay valid.

mod decode_stream;
mod encoding;
mod inspection;
mod legacy_url;
mod query;
mod run;
mod structured_clone;
mod url;

use heapstead_types::digest;
use std::borrow::Cow;
use v8::MapFnTo;

type Native = for<'s, 'i, 'a> fn(&mut v8::PinScope<'s, 'i>, &v8::FunctionCallbackArguments<'s>, &mut v8::ReturnValue<'a>);

const NATIVES: &[(&str, Native)] = &[
    ("output", run::output),
    ("now", run::now),
    ("wallClock", run::wall_clock),
    ("random", run::random),
    ("enqueueMicrotask", run::enqueue_microtask),
    ("reportUncaught", run::report_uncaught),
    ("digest", run::digest),
    ("classOf", inspection::class_of),
    ("proxyDetails", inspection::proxy_details),
    ("promiseDetails", inspection::promise_details),
    ("previewEntries", inspection::preview_entries),
    ("ownNonIndexKeys", inspection::own_non_index_keys),
    ("constructorName", inspection::constructor_name),
    ("urlParse", legacy_url::parse),
    ("urlSet", legacy_url::set),
    ("utf8Encode", encoding::utf8_encode),
    ("utf8EncodeInto", encoding::utf8_encode_into),
    ("encodingName", encoding::name),
    ("decode", encoding::decode),
    ("structuredClone", structured_clone::structured_clone),
    ("parseUrl", url::parse),
    ("canParseUrl", url::can_parse),
    ("changeUrl", url::change),
    ("originOfUrl", url::origin),
    ("parseQuery", query::parse),
    ("formatQuery", query::format),
    ("decodeStream", decode_stream::decode_stream),
    ("leaveGap", run::leave_gap),
];

/// Natives that only heaps of earlier builds call. They are not installed in new heaps.
const RETIRED: &[&str] = &["urlParse", "urlSet"];

/// Initialises what natives need, once per zygote.
pub fn prepare() {
    url::unpack_tables();
}

pub fn count() -> u32 {
    NATIVES.len() as u32
}

/// Digest of the names of the first `count` natives. None if there are fewer.
pub fn digest_of_first(count: u32) -> Option<u32> {
    NATIVES.get(..count as usize).map(|first| digest(first.iter().map(|(name, _)| *name)))
}

pub fn digests() -> Vec<u32> {
    (0..=count()).filter_map(digest_of_first).collect()
}

pub fn external_references() -> Cow<'static, [v8::ExternalReference]> {
    Cow::Owned(vec![v8::ExternalReference { function: dispatch.map_fn_to() }])
}

/// Defines every native that is in use as a method of `host`.
pub fn install(scope: &mut v8::PinScope<'_, '_>, host: v8::Local<'_, v8::Object>) {
    for (index, (name, _)) in NATIVES.iter().enumerate().filter(|(_, (name, _))| !RETIRED.contains(name)) {
        let index = v8::Integer::new(scope, index as i32);
        let function = v8::Function::builder(dispatch).data(index.into()).constructor_behavior(v8::ConstructorBehavior::Throw).build(scope);
        if let (Some(function), Some(name)) = (function, v8::String::new(scope, name)) {
            host.set(scope, name.into(), function.into());
        }
    }
}

fn dispatch<'s>(scope: &mut v8::PinScope<'s, '_>, arguments: v8::FunctionCallbackArguments<'s>, mut answer: v8::ReturnValue<'_>) {
    let index = arguments.data().uint32_value(scope).unwrap_or(u32::MAX) as usize;
    if let Some((_, native)) = NATIVES.get(index) {
        native(scope, &arguments, &mut answer);
    }
}

/// A copy of the bytes of a view, because user code may change them while a native runs.
fn bytes_of(value: v8::Local<'_, v8::Value>) -> Vec<u8> {
    let Ok(view) = v8::Local::<v8::ArrayBufferView>::try_from(value) else { return Vec::new() };
    let mut bytes = vec![0; view.byte_length()];
    let copied = view.copy_contents(&mut bytes);
    bytes.truncate(copied);
    bytes
}

/// Copies `bytes` into a view, as many as fit.
fn fill(value: v8::Local<'_, v8::Value>, bytes: &[u8]) {
    let Ok(view) = v8::Local::<v8::ArrayBufferView>::try_from(value) else { return };
    let length = view.byte_length().min(bytes.len());
    if length > 0 {
        // SAFETY: the view is alive and has at least `length` bytes.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), view.data().cast(), length) };
    }
}

/// An array buffer with these bytes, which counts towards the cap like any other.
fn buffer<'s>(scope: &mut v8::PinScope<'s, '_>, bytes: &[u8]) -> v8::Local<'s, v8::ArrayBuffer> {
    let buffer = v8::ArrayBuffer::new(scope, bytes.len());
    if let Some(data) = buffer.data() {
        // SAFETY: a fresh buffer of exactly this length.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), data.as_ptr().cast(), bytes.len()) };
    }
    buffer
}

fn uint8_array<'s>(scope: &mut v8::PinScope<'s, '_>, bytes: &[u8]) -> Option<v8::Local<'s, v8::Uint8Array>> {
    let buffer = buffer(scope, bytes);
    v8::Uint8Array::new(scope, buffer, 0, bytes.len())
}

fn strings<'s>(scope: &mut v8::PinScope<'s, '_>, texts: &[&str]) -> v8::Local<'s, v8::Value> {
    let values: Vec<v8::Local<v8::Value>> = texts.iter().filter_map(|text| v8::String::new(scope, text).map(Into::into)).collect();
    v8::Array::new_with_elements(scope, &values).into()
}

fn throw(scope: &mut v8::PinScope<'_, '_>, text: &str) {
    if let Some(message) = v8::String::new(scope, text) {
        let error = v8::Exception::error(scope, message);
        scope.throw_exception(error);
    }
}

fn throw_range_error(scope: &mut v8::PinScope<'_, '_>, text: &str) {
    if let Some(message) = v8::String::new(scope, text) {
        let error = v8::Exception::range_error(scope, message);
        scope.throw_exception(error);
    }
}
