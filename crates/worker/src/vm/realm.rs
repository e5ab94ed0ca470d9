//! Calls from the worker into the base heap's JavaScript: the functions of `base`, the private object of `js/*.js`, which every heap contains.

use super::state::State;
use heapstead_types::{Failure, limits};

/// Index of `base` in the context data of a snapshot.
const BASE: usize = 0;

pub struct Realm<'s> {
    base: v8::Local<'s, v8::Object>,
}

/// The outcome of a call into the base heap.
pub enum CallOutcome<'s> {
    Returned(v8::Local<'s, v8::Value>),
    Threw(v8::Local<'s, v8::Value>),
    /// The run is being terminated.
    Stopped,
}

impl<'s> Realm<'s> {
    pub fn new(base: v8::Local<'s, v8::Object>) -> Self {
        Self { base }
    }

    /// Finds `base` in a context that was restored from a heap.
    pub fn restore(scope: &mut v8::PinScope<'s, '_>) -> Option<Self> {
        scope.get_context_data_from_snapshot_once::<v8::Object>(BASE).ok().map(Self::new)
    }

    /// Stores `base` where V8's callbacks can find it.
    pub fn share(&self, scope: &mut v8::PinScope<'_, '_>) {
        let base = self.global(scope);
        if let Some(state) = State::of(scope) {
            state.base = Some(base);
        }
    }

    pub fn global(&self, scope: &mut v8::PinScope<'_, '_>) -> v8::Global<v8::Object> {
        v8::Global::new(scope, self.base)
    }

    /// Adds `base` to the context data, from which [`Realm::restore`] reads it. Must be called before every snapshot.
    pub fn add_to_snapshot(&self, scope: &mut v8::PinScope<'_, '_>) {
        let context = scope.get_current_context();
        scope.add_context_data(context, self.base);
    }

    pub fn call<'c>(&self, scope: &mut v8::PinScope<'c, '_>, name: &str, arguments: &[v8::Local<'c, v8::Value>]) -> CallOutcome<'c> {
        let function = v8::String::new(scope, name)
            .and_then(|name| self.base.get(scope, name.into()))
            .and_then(|value| v8::Local::<v8::Function>::try_from(value).ok());
        let Some(function) = function else { return CallOutcome::Stopped };
        let undefined = v8::undefined(scope).into();
        v8::tc_scope!(let caught, scope);
        match function.call(caught, undefined, arguments) {
            Some(value) => CallOutcome::Returned(value),
            None if caught.has_terminated() => CallOutcome::Stopped,
            None => caught.exception().map_or(CallOutcome::Stopped, CallOutcome::Threw),
        }
    }

    /// Calls the functions that every run calls, so that the base heap contains their bytecode.
    pub fn warm_up(&self, scope: &mut v8::PinScope<'_, '_>) {
        self.hide_console(scope);
        self.show_console(scope);
        let _ = self.turn(scope, true);
        self.warm_up_ends(scope);
    }

    /// Calls those of them that begin and end a run.
    pub fn warm_up_ends(&self, scope: &mut v8::PinScope<'_, '_>) {
        self.begin(scope, &[]);
        let number = v8::Integer::new(scope, 1).into();
        let _ = self.describe_result(scope, number);
        let _ = self.end(scope);
    }

    pub fn hide_console(&self, scope: &mut v8::PinScope<'_, '_>) {
        self.call(scope, "hideConsole", &[]);
    }

    pub fn show_console(&self, scope: &mut v8::PinScope<'_, '_>) {
        self.call(scope, "showConsole", &[]);
    }

    /// Registers the source positions of the generated script `name`: see `js/08_stacks.js`.
    pub fn add_positions(&self, scope: &mut v8::PinScope<'_, '_>, name: &str, shown: &str, segments: &[i32]) {
        let bytes: Vec<u8> = segments.iter().flat_map(|number| number.to_ne_bytes()).collect();
        let store = v8::ArrayBuffer::new_backing_store_from_vec(bytes).make_shared();
        let buffer = v8::ArrayBuffer::with_backing_store(scope, &store);
        let segments = v8::Int32Array::new(scope, buffer, 0, segments.len());
        if let (Some(name), Some(shown), Some(segments)) = (v8::String::new(scope, name), v8::String::new(scope, shown), segments) {
            self.call(scope, "addPositions", &[name.into(), shown.into(), segments.into()]);
        }
    }

    /// Formats a stack with positions in the author's source.
    pub fn prepare_stack_trace<'c>(
        &self,
        scope: &mut v8::PinScope<'c, '_>,
        error: v8::Local<'c, v8::Value>,
        sites: v8::Local<'c, v8::Array>,
    ) -> v8::Local<'c, v8::Value> {
        match self.call(scope, "prepareStackTrace", &[error, sites.into()]) {
            CallOutcome::Returned(stack) => stack,
            CallOutcome::Threw(thrown) => thrown,
            CallOutcome::Stopped => v8::undefined(scope).into(),
        }
    }

    /// Defines the globals that V8 does not create in contexts for snapshots.
    pub fn install(&self, scope: &mut v8::PinScope<'_, '_>) {
        self.call(scope, "install", &[]);
    }

    /// Starts a run in the base heap, with the headers that only this run may see.
    pub fn begin(&self, scope: &mut v8::PinScope<'_, '_>, headers: &[(String, String)]) {
        let (mut names, mut values, mut flat) = (Vec::<v8::Local<v8::Name>>::new(), Vec::<v8::Local<v8::Value>>::new(), Vec::new());
        for (name, value) in headers {
            let (Some(name), Some(value)) = (v8::String::new(scope, name), v8::String::new(scope, value)) else { continue };
            names.push(name.into());
            values.push(value.into());
            flat.extend([v8::Local::<v8::Value>::from(name), value.into()]);
        }
        let (Some(list_name), Some(object_name)) = (v8::String::new(scope, "headers"), v8::String::new(scope, "headerValues")) else {
            return;
        };
        // Heaps of earlier builds read the list.
        let list = v8::Array::new_with_elements(scope, &flat);
        // No prototypes: a setter that earlier code defined on a prototype would receive the headers.
        let nothing = v8::null(scope).into();
        let object = v8::Object::with_prototype_and_properties(scope, nothing, &names, &values);
        let run = v8::Object::with_prototype_and_properties(
            scope,
            nothing,
            &[list_name.into(), object_name.into()],
            &[list.into(), object.into()],
        );
        self.call(scope, "begin", &[run.into()]);
    }

    /// Clears the state of the run, which must not be saved. Fails if the heap could not be used again.
    pub fn end(&self, scope: &mut v8::PinScope<'_, '_>) -> Result<(), Failure> {
        self.call(scope, "end", &[]);
        match self.call(scope, "canHideConsole", &[]) {
            CallOutcome::Returned(can) if can.is_true() => Ok(()),
            _ => Err(Failure::Unsaveable(
                "`console` was replaced by a property that is not configurable: make it configurable, or do not replace it".into(),
            )),
        }
    }

    /// Runs one callback that is due. Returns the milliseconds until the next one: 0 if it is due now, none if the run has nothing to wait for.
    pub fn turn<'c>(&self, scope: &mut v8::PinScope<'c, '_>, main_is_settled: bool) -> Result<Option<f64>, CallOutcome<'c>> {
        let main_is_settled = v8::Boolean::new(scope, main_is_settled).into();
        match self.call(scope, "turn", &[main_is_settled]) {
            CallOutcome::Returned(value) => Ok(value.number_value(scope).filter(|wait_ms| *wait_ms >= 0.0)),
            other => Err(other),
        }
    }

    /// Converts the completion value to text.
    pub fn describe_result<'c>(&self, scope: &mut v8::PinScope<'c, '_>, value: v8::Local<'c, v8::Value>) -> Result<String, Failure> {
        let chars_max = v8::Number::new(scope, limits::RESULT_BYTES_MAX as f64).into();
        match self.call(scope, "describeResult", &[value, chars_max]) {
            CallOutcome::Returned(text) => {
                let text = text.to_rust_string_lossy(scope);
                if text.len() > limits::RESULT_BYTES_MAX { Err(Failure::ResultTooLarge) } else { Ok(text) }
            }
            CallOutcome::Threw(thrown) if self.is(scope, "ResultTooLarge", thrown) => Err(Failure::ResultTooLarge),
            CallOutcome::Threw(thrown) => {
                Err(Failure::Exception(format!("the result can't be shown: {}", self.describe_error(scope, thrown))))
            }
            CallOutcome::Stopped => Err(super::memory::stop_failure("the description of the result")),
        }
    }

    /// Makes the completion value available to later runs, as `_`. Heaps of earlier builds can't, and code may have made it impossible.
    pub fn keep_result<'c>(&self, scope: &mut v8::PinScope<'c, '_>, value: v8::Local<'c, v8::Value>) {
        self.call(scope, "keepResult", &[value]);
    }

    /// Converts a thrown value to text, with its stack.
    pub fn describe_error<'c>(&self, scope: &mut v8::PinScope<'c, '_>, thrown: v8::Local<'c, v8::Value>) -> String {
        match self.call(scope, "describeError", &[thrown]) {
            CallOutcome::Returned(text) => text.to_rust_string_lossy(scope),
            CallOutcome::Threw(_) | CallOutcome::Stopped => "Uncaught exception that can't be shown".to_owned(),
        }
    }

    fn is(&self, scope: &mut v8::PinScope<'_, '_>, name: &str, value: v8::Local<'_, v8::Value>) -> bool {
        v8::String::new(scope, name).and_then(|name| self.base.get(scope, name.into())).is_some_and(|ours| ours.strict_equals(value))
    }
}
