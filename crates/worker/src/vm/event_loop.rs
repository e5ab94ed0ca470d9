//! The event loop: runs microtasks and due callbacks, one callback at a time, until none is left.

use super::inputs;
use super::memory;
use super::realm::{CallOutcome, Realm};
use super::state::State;
use crate::Channel;
use heapstead_types::Failure;
use std::time::Duration;

/// Runs until the promise `main` has settled and the loop is empty.
pub fn run(
    scope: &mut v8::PinScope<'_, '_>,
    realm: &Realm<'_>,
    channel: &Channel,
    main: v8::Local<'_, v8::Promise>,
) -> Result<(), Failure> {
    loop {
        v8::scope!(let scope, scope);
        settle(scope, realm, main)?;
        match turn(scope, realm, main.state() != v8::PromiseState::Pending)? {
            Some(wait) if wait.is_zero() => {}
            // The recorded clock says that the time has passed.
            Some(_) if inputs::is_replay() => {}
            Some(wait) => channel.sleep(wait),
            None if pump(scope) => {}
            None => break,
        }
    }
    match main.state() {
        v8::PromiseState::Pending => Err(Failure::NeverSettles),
        _ => Ok(()),
    }
}

/// Runs all microtasks, then checks for uncaught errors and unhandled rejections.
fn settle(scope: &mut v8::PinScope<'_, '_>, realm: &Realm<'_>, main: v8::Local<'_, v8::Promise>) -> Result<(), Failure> {
    scope.perform_microtask_checkpoint();
    if memory::exceeded() {
        return Err(memory::cap_failure());
    }
    if let Some(uncaught) = State::of(scope).and_then(|state| state.uncaught.take()) {
        let uncaught = v8::Local::new(scope, uncaught);
        return Err(exception(scope, realm, uncaught));
    }
    if main.state() == v8::PromiseState::Rejected {
        let reason = main.result(scope);
        return Err(exception(scope, realm, reason));
    }
    if let Some(promise) = State::of(scope).and_then(State::take_rejection) {
        let reason = v8::Local::new(scope, promise).result(scope);
        return Err(exception(scope, realm, reason));
    }
    Ok(())
}

/// Runs one callback that is due. Returns the time until the next one, if there is one.
fn turn(scope: &mut v8::PinScope<'_, '_>, realm: &Realm<'_>, main_is_settled: bool) -> Result<Option<Duration>, Failure> {
    match realm.turn(scope, main_is_settled) {
        Ok(wait_ms) => Ok(wait_ms.and_then(|wait_ms| Duration::try_from_secs_f64(wait_ms / 1000.0).ok())),
        Err(CallOutcome::Threw(thrown)) => Err(exception(scope, realm, thrown)),
        Err(_) => Err(memory::stop_failure("the event loop")),
    }
}

/// Runs a task that V8 itself posted, such as asynchronous WebAssembly compilation. False if there is none.
fn pump(scope: &mut v8::PinScope<'_, '_>) -> bool {
    v8::Platform::pump_message_loop(&v8::V8::get_current_platform(), scope, false)
}

pub fn exception<'s>(scope: &mut v8::PinScope<'s, '_>, realm: &Realm<'_>, thrown: v8::Local<'s, v8::Value>) -> Failure {
    let text = realm.describe_error(scope, thrown);
    if memory::exceeded() { memory::cap_failure() } else { Failure::Exception(memory::explain_refused_buffer(text)) }
}
