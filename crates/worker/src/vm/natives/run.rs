//! Natives of the run itself: output, time, randomness, microtasks, uncaught errors, digests.

use super::super::inputs;
use super::super::state::State;
use super::{buffer, bytes_of, fill};
use heapstead_wire::Gap;
use sha2::Digest;

pub fn output<'s>(scope: &mut v8::PinScope<'s, '_>, arguments: &v8::FunctionCallbackArguments<'s>, _answer: &mut v8::ReturnValue<'_>) {
    let text = arguments.get(0).to_rust_string_lossy(scope);
    if let Some(channel) = State::of(scope).and_then(|state| state.channel()) {
        channel.output(&text);
    }
}

pub fn now<'s>(_scope: &mut v8::PinScope<'s, '_>, _arguments: &v8::FunctionCallbackArguments<'s>, answer: &mut v8::ReturnValue<'_>) {
    answer.set_double(inputs::elapsed_ms());
}

pub fn wall_clock<'s>(_scope: &mut v8::PinScope<'s, '_>, _arguments: &v8::FunctionCallbackArguments<'s>, answer: &mut v8::ReturnValue<'_>) {
    answer.set_double(inputs::began_at_ms());
}

pub fn random<'s>(_scope: &mut v8::PinScope<'s, '_>, arguments: &v8::FunctionCallbackArguments<'s>, _answer: &mut v8::ReturnValue<'_>) {
    let Ok(view) = v8::Local::<v8::ArrayBufferView>::try_from(arguments.get(0)) else { return };
    let mut bytes = vec![0; view.byte_length()];
    // Zeros instead of random bytes would be keys that can be guessed. The kernel always has randomness once it has booted.
    assert!(inputs::random(&mut bytes), "the kernel provides no randomness");
    fill(arguments.get(0), &bytes);
}

/// Notes that code reads something that is not recorded: the argument is the number of a `Gap`.
pub fn leave_gap<'s>(scope: &mut v8::PinScope<'s, '_>, arguments: &v8::FunctionCallbackArguments<'s>, _answer: &mut v8::ReturnValue<'_>) {
    let number = arguments.get(0).uint32_value(scope).unwrap_or_default();
    if let Some(gap) = Gap::ALL.into_iter().find(|gap| *gap as u32 == number) {
        inputs::gap(gap);
    }
}

pub fn enqueue_microtask<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    arguments: &v8::FunctionCallbackArguments<'s>,
    _answer: &mut v8::ReturnValue<'_>,
) {
    if let Ok(function) = v8::Local::<v8::Function>::try_from(arguments.get(0)) {
        scope.enqueue_microtask(function);
    }
}

/// Keeps the first uncaught error, which is the one that ends the run.
pub fn report_uncaught<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    arguments: &v8::FunctionCallbackArguments<'s>,
    _answer: &mut v8::ReturnValue<'_>,
) {
    let thrown = v8::Global::new(scope, arguments.get(0));
    if let Some(state) = State::of(scope) {
        state.uncaught.get_or_insert(thrown);
    }
}

pub fn digest<'s>(scope: &mut v8::PinScope<'s, '_>, arguments: &v8::FunctionCallbackArguments<'s>, answer: &mut v8::ReturnValue<'_>) {
    let name = arguments.get(0).to_rust_string_lossy(scope);
    let bytes = bytes_of(arguments.get(1));
    let digest = match name.as_str() {
        "SHA-1" => sha1::Sha1::digest(&bytes).to_vec(),
        "SHA-256" => sha2::Sha256::digest(&bytes).to_vec(),
        "SHA-384" => sha2::Sha384::digest(&bytes).to_vec(),
        "SHA-512" => sha2::Sha512::digest(&bytes).to_vec(),
        _ => return,
    };
    answer.set(buffer(scope, &digest).into());
}
