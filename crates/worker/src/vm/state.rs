//! State that the natives and callbacks of one run share. It is in a slot of the isolate, and is removed before the snapshot.

use crate::Channel;
use std::collections::{BTreeMap, HashMap};
use std::num::NonZero;

/// Rejected promises without a handler. Further ones are ignored, because the oldest one decides the failure.
const REJECTIONS_MAX: usize = 100_000;

pub struct State {
    channel: *const Channel,
    /// An error that was thrown where no code can catch it: in an event listener or a microtask.
    pub uncaught: Option<v8::Global<v8::Value>>,
    /// In the order of rejection. `rejections_by_hash` finds them by identity hash.
    rejections: BTreeMap<u64, v8::Global<v8::Promise>>,
    rejections_by_hash: HashMap<NonZero<i32>, Vec<u64>>,
    rejections_seen: u64,
    /// The base heap's private object, for callbacks whose only argument is a scope.
    pub base: Option<v8::Global<v8::Object>>,
}

impl State {
    pub fn install(isolate: &mut v8::Isolate, channel: &Channel) {
        isolate.set_slot(Self {
            channel,
            uncaught: None,
            rejections: BTreeMap::new(),
            rejections_by_hash: HashMap::new(),
            rejections_seen: 0,
            base: None,
        });
        isolate.set_promise_reject_callback(on_promise_reject);
    }

    pub fn of(isolate: &mut v8::Isolate) -> Option<&mut Self> {
        isolate.get_slot_mut()
    }

    /// None while the base heap is made and in the raw loop, where output is dropped.
    pub fn channel(&self) -> Option<&Channel> {
        // SAFETY: the channel outlives the isolate. Both live until the process exits.
        unsafe { self.channel.as_ref() }
    }

    /// Takes the first rejected promise that still has no handler.
    pub fn take_rejection(&mut self) -> Option<v8::Global<v8::Promise>> {
        self.rejections.pop_first().map(|(_, promise)| promise)
    }

    fn add_rejection(&mut self, hash: NonZero<i32>, promise: v8::Global<v8::Promise>) {
        if self.rejections.len() < REJECTIONS_MAX {
            self.rejections_seen += 1;
            self.rejections.insert(self.rejections_seen, promise);
            self.rejections_by_hash.entry(hash).or_default().push(self.rejections_seen);
        }
    }

    fn remove_rejection(&mut self, hash: NonZero<i32>, promise: &v8::Global<v8::Promise>) {
        let Some(numbers) = self.rejections_by_hash.get_mut(&hash) else { return };
        numbers.retain(|number| {
            let is_it = self.rejections.get(number) == Some(promise);
            if is_it {
                self.rejections.remove(number);
            }
            !is_it
        });
    }

    pub fn remove(isolate: &mut v8::Isolate) {
        isolate.remove_slot::<Self>();
    }
}

unsafe extern "C" fn on_promise_reject(message: v8::PromiseRejectMessage) {
    v8::callback_scope!(unsafe scope, &message);
    let promise = message.get_promise();
    let hash = promise.get_identity_hash();
    let promise = v8::Global::new(scope, promise);
    let Some(state) = State::of(scope) else { return };
    match message.get_event() {
        v8::PromiseRejectEvent::PromiseRejectWithNoHandler => state.add_rejection(hash, promise),
        v8::PromiseRejectEvent::PromiseHandlerAddedAfterReject => state.remove_rejection(hash, &promise),
        _ => {}
    }
}
