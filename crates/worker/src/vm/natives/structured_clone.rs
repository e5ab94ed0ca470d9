//! `structuredClone`, implemented with V8's serialiser.

use v8::{ValueDeserializerHelper, ValueSerializerHelper};

struct Writing<'s> {
    /// JavaScript function that creates the error for a value that can't be cloned.
    make_error: v8::Local<'s, v8::Function>,
    /// JavaScript function that tells whether an object is of a class of the base heap that can't be cloned. Older heaps do not have it.
    is_refused: Option<v8::Local<'s, v8::Function>>,
    /// Objects with this prototype are plain, so `is_refused` is not called for them. Most objects are plain.
    plain_prototype: Option<v8::Local<'s, v8::Value>>,
}

struct Reading;

impl v8::ValueSerializerImpl for Writing<'_> {
    fn throw_data_clone_error<'s>(&self, scope: &mut v8::PinScope<'s, '_>, message: v8::Local<'s, v8::String>) {
        let undefined = v8::undefined(scope).into();
        if let Some(error) = self.make_error.call(scope, undefined, &[message.into()]) {
            scope.throw_exception(error);
        }
    }

    fn has_custom_host_object(&self, _: &v8::Isolate) -> bool {
        self.is_refused.is_some()
    }

    fn is_host_object<'s>(&self, scope: &mut v8::PinScope<'s, '_>, object: v8::Local<'s, v8::Object>) -> Option<bool> {
        let Some(is_refused) = self.is_refused else { return Some(false) };
        if object.get_prototype(scope) == self.plain_prototype {
            return Some(false);
        }
        let undefined = v8::undefined(scope).into();
        is_refused.call(scope, undefined, &[object.into()]).map(|answer| answer.is_true())
    }

    fn write_host_object<'s>(
        &self,
        scope: &mut v8::PinScope<'s, '_>,
        _: v8::Local<'s, v8::Object>,
        _: &dyn ValueSerializerHelper,
    ) -> Option<bool> {
        let message = v8::String::new(scope, "Cannot clone object of unsupported type.")?;
        self.throw_data_clone_error(scope, message);
        None
    }
}

impl v8::ValueDeserializerImpl for Reading {}

/// `structuredClone(value, buffersToTransfer, makeError, isRefused)`.
pub fn structured_clone<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    arguments: &v8::FunctionCallbackArguments<'s>,
    answer: &mut v8::ReturnValue<'_>,
) {
    let context = scope.get_current_context();
    let Ok(make_error) = v8::Local::<v8::Function>::try_from(arguments.get(2)) else { return };
    let Some(buffers) = transferred(scope, arguments.get(1)) else {
        let undefined = v8::undefined(scope).into();
        let message = v8::String::new(
            scope,
            "a value in the transfer list can't be transferred: only array buffers that are not detached can, each once",
        );
        if let Some(error) = message.and_then(|message| make_error.call(scope, undefined, &[message.into()])) {
            scope.throw_exception(error);
        }
        return;
    };
    let is_refused = v8::Local::<v8::Function>::try_from(arguments.get(3)).ok();
    let plain_prototype = v8::Object::new(scope).get_prototype(scope);
    let serializer = v8::ValueSerializer::new(scope, Box::new(Writing { make_error, is_refused, plain_prototype }));
    serializer.write_header();
    for (id, buffer) in buffers.iter().enumerate() {
        serializer.transfer_array_buffer(id as u32, *buffer);
    }
    if serializer.write_value(context, arguments.get(0)) != Some(true) {
        return;
    }
    let bytes = serializer.release();
    let deserializer = v8::ValueDeserializer::new(scope, Box::new(Reading), &bytes);
    for (id, buffer) in buffers.iter().enumerate() {
        let moved = v8::ArrayBuffer::with_backing_store(scope, &buffer.get_backing_store());
        buffer.detach(None);
        deserializer.transfer_array_buffer(id as u32, moved);
    }
    if deserializer.read_header(context) != Some(true) {
        return;
    }
    if let Some(clone) = deserializer.read_value(context) {
        answer.set(clone);
    }
}

/// The buffers of a transfer list. None if it contains anything else, a buffer twice, or a detached buffer.
fn transferred<'s>(scope: &mut v8::PinScope<'s, '_>, list: v8::Local<'s, v8::Value>) -> Option<Vec<v8::Local<'s, v8::ArrayBuffer>>> {
    let list = v8::Local::<v8::Array>::try_from(list).ok()?;
    let mut buffers: Vec<v8::Local<v8::ArrayBuffer>> = Vec::new();
    for index in 0..list.length() {
        let buffer = v8::Local::<v8::ArrayBuffer>::try_from(list.get_index(scope, index)?).ok()?;
        if buffer.was_detached() || buffers.contains(&buffer) {
            return None;
        }
        buffers.push(buffer);
    }
    Some(buffers)
}
