//! What natives and callbacks of one run share: kept in the isolate's slot, gone before the snapshot.

use crate::Session;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Rejected promises that nobody has handled yet. Past this many the oldest decide.
const REJECTIONS_MAX: usize = 100_000;

pub struct State {
    session: *const Session,
    began: Instant,
    began_at: SystemTime,
    /// Thrown where no caller could catch it: an event listener, a microtask.
    pub uncaught: Option<v8::Global<v8::Value>>,
    rejections: Vec<v8::Global<v8::Promise>>,
    /// The base heap's private object, for callbacks that get nothing but a scope.
    pub base: Option<v8::Global<v8::Object>>,
}

impl State {
    pub fn install(isolate: &mut v8::Isolate, session: &Session) {
        isolate.set_slot(Self { session, began: Instant::now(), began_at: SystemTime::now(), uncaught: None, rejections: Vec::new(), base: None });
        isolate.set_promise_reject_callback(on_promise_reject);
    }

    pub fn of(isolate: &mut v8::Isolate) -> Option<&mut Self> {
        isolate.get_slot_mut()
    }

    /// Output goes nowhere where there is no session: when the base heap is made, and in the raw bench.
    pub fn session(&self) -> Option<&Session> {
        // SAFETY: the session outlives the isolate; both end with the process.
        unsafe { self.session.as_ref() }
    }

    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub fn began_at_ms(&self) -> f64 {
        self.began_at.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64() * 1000.0)
    }

    /// The first promise that was rejected and is still without a handler.
    pub fn take_rejection(&mut self) -> Option<v8::Global<v8::Promise>> {
        (!self.rejections.is_empty()).then(|| self.rejections.swap_remove(0))
    }

    pub fn remove(isolate: &mut v8::Isolate) {
        isolate.remove_slot::<Self>();
    }
}

unsafe extern "C" fn on_promise_reject(message: v8::PromiseRejectMessage) {
    v8::callback_scope!(unsafe scope, &message);
    let promise = message.get_promise();
    match message.get_event() {
        v8::PromiseRejectEvent::PromiseRejectWithNoHandler => {
            let promise = v8::Global::new(scope, promise);
            if let Some(state) = State::of(scope)
                && state.rejections.len() < REJECTIONS_MAX
            {
                state.rejections.push(promise);
            }
        }
        v8::PromiseRejectEvent::PromiseHandlerAddedAfterReject => {
            let promise = v8::Global::new(scope, promise);
            if let Some(state) = State::of(scope) {
                state.rejections.retain(|rejected| *rejected != promise);
            }
        }
        _ => {}
    }
}
