//! V8's REPL mode: top-level `await`, declarations that persist and may be repeated, and a completion value.

use super::realm::Realm;
use std::ffi::c_void;
use std::ptr::NonNull;

#[repr(C)]
struct RawRepl {
    _opaque: [u8; 0],
}

unsafe extern "C" {
    fn heapstead_repl_new(isolate: v8::UnsafeRawIsolatePtr, context: *const v8::Context) -> *mut RawRepl;
    fn heapstead_repl_evaluate(
        repl: *mut RawRepl,
        isolate: v8::UnsafeRawIsolatePtr,
        message: *const c_void,
        length: usize,
        wide: bool,
        answer: *mut *const c_void,
        answer_length: *mut usize,
        answer_wide: *mut bool,
    ) -> *const v8::Promise;
    fn heapstead_repl_is_compiling() -> bool;
    fn heapstead_repl_prepare(repl: *mut RawRepl);
    fn heapstead_repl_delete(repl: *mut RawRepl, context: *const v8::Context);
}

/// Why V8 could not compile a source, with the 1-based position in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileError {
    pub message: String,
    pub line: u32,
    pub column: u32,
}

impl From<heapstead_javascript::SyntaxError> for CompileError {
    fn from(error: heapstead_javascript::SyntaxError) -> Self {
        Self { message: format!("SyntaxError: {}", error.message), line: error.line, column: error.column }
    }
}

impl CompileError {
    /// Moves a position in the line that [`Repl::evaluate`] appends to the end of the author's source.
    pub fn within(self, code: &str) -> Self {
        let last = code.split('\n').next_back().unwrap_or_default();
        let end = (code.matches('\n').count() as u32 + 1, last.encode_utf16().count() as u32 + 1);
        let (line, column) = (self.line, self.column).min(end);
        Self { message: self.message, line, column }
    }
}

pub enum Evaluation<'s> {
    /// The promise of the completion value, wrapped in an object: see [`completion_value`].
    Promise(v8::Local<'s, v8::Promise>),
    DoesNotCompile(CompileError),
    /// The run is being terminated.
    Stopped,
}

/// An inspector on one context, used as a console. It must be detached before a snapshot, because its objects contain raw pointers.
pub struct Repl {
    raw: *mut RawRepl,
    context: v8::Global<v8::Context>,
}

impl Repl {
    pub fn attach(scope: &mut v8::PinScope<'_, '_>, realm: &Realm<'_>) -> Self {
        let context = scope.get_current_context();
        realm.hide_console(scope);
        // SAFETY: isolate and context are alive and entered.
        let raw = unsafe { heapstead_repl_new(scope.as_raw_isolate_ptr(), &*context) };
        realm.show_console(scope);
        Self { raw, context: v8::Global::new(scope, context) }
    }

    /// Evaluates `code`. Error stacks show `name` as its file name.
    pub fn evaluate<'s>(&self, scope: &mut v8::PinScope<'s, '_>, code: &str, name: &str) -> Evaluation<'s> {
        let expression = format!("{code}\n//# sourceURL={name}");
        let request = serde_json::json!({
            "id": 1,
            "method": "Runtime.evaluate",
            "params": { "expression": expression, "contextId": 1, "replMode": true, "silent": true }
        });
        match self.dispatch(scope, &request.to_string()) {
            (Some(promise), _) => Evaluation::Promise(promise),
            (None, answer) => match answer.pointer("/result/exceptionDetails") {
                Some(details) => Evaluation::DoesNotCompile(compile_error(details)),
                None => Evaluation::Stopped,
            },
        }
    }

    /// Prepares for the next evaluation.
    pub fn prepare(&self) {
        // SAFETY: created by `attach`, and not deleted yet.
        unsafe { heapstead_repl_prepare(self.raw) }
    }

    /// Sends a message that does nothing. Nothing is compiled, because V8 counts scripts, and the count is part of every snapshot.
    pub fn warm_up(&self, scope: &mut v8::PinScope<'_, '_>) {
        let _ = self.dispatch(scope, r#"{"id":1,"method":"Runtime.nothing"}"#);
    }

    fn dispatch<'s>(&self, scope: &mut v8::PinScope<'s, '_>, message: &str) -> (Option<v8::Local<'s, v8::Promise>>, serde_json::Value) {
        let units: Vec<u16>;
        let (data, count, message_is_wide): (*const c_void, _, _) = if message.is_ascii() {
            (message.as_ptr().cast(), message.len(), false)
        } else {
            units = message.encode_utf16().collect();
            (units.as_ptr().cast(), units.len(), true)
        };
        let (mut answer, mut length, mut wide) = (std::ptr::null(), 0, false);
        // SAFETY: the message outlives the call, and the answer is valid until the next call. The promise is returned as a handle in the current
        // scope, and a `Local` is such a pointer.
        unsafe {
            let promise = heapstead_repl_evaluate(
                self.raw,
                scope.as_raw_isolate_ptr(),
                data,
                count,
                message_is_wide,
                &mut answer,
                &mut length,
                &mut wide,
            );
            if let Some(promise) = NonNull::new(promise.cast_mut()) {
                return (Some(std::mem::transmute::<NonNull<v8::Promise>, v8::Local<'s, v8::Promise>>(promise)), serde_json::Value::Null);
            }
            let text: String = match (answer.is_null(), wide) {
                (true, _) => String::new(),
                (_, true) => String::from_utf16_lossy(std::slice::from_raw_parts(answer.cast::<u16>(), length)),
                (_, false) => std::slice::from_raw_parts(answer.cast::<u8>(), length).iter().map(|&byte| char::from(byte)).collect(),
            };
            (None, serde_json::from_str(&text).unwrap_or_default())
        }
    }

    pub fn detach(self, scope: &mut v8::PinScope<'_, '_>) {
        let context = v8::Local::new(scope, self.context);
        // SAFETY: created by `attach`, deleted once, and its context is still alive.
        unsafe { heapstead_repl_delete(self.raw, &*context) }
    }
}

fn compile_error(details: &serde_json::Value) -> CompileError {
    let number = |name| details.get(name).and_then(serde_json::Value::as_u64).unwrap_or(0) as u32 + 1;
    let text = |path| details.pointer(path).and_then(serde_json::Value::as_str).unwrap_or_default();
    // V8's own class name, because code can change `name` and `toString` of the prototypes. The message is an own property of the error.
    let kind = Some(text("/exception/className")).filter(|kind| !kind.is_empty()).unwrap_or("SyntaxError");
    let described = text("/exception/description").lines().next().unwrap_or_default();
    let message = described.split_once(": ").map_or(described, |(_, message)| message);
    CompileError { message: format!("{kind}: {message}"), line: number("lineNumber"), column: number("columnNumber") }
}

/// Whether V8 compiles a source, none of which has run yet.
pub fn is_compiling() -> bool {
    // SAFETY: reads a variable of this thread.
    unsafe { heapstead_repl_is_compiling() }
}

/// The stack of the error of a source that does not compile, without a call into code of the heap's owner: the error of a replay has another
/// message.
pub fn describe_refusal<'s>(scope: &mut v8::PinScope<'s, '_>, error: v8::Local<'s, v8::Value>) -> v8::Local<'s, v8::Value> {
    let described = v8::Local::<v8::Object>::try_from(error).ok().and_then(|error| {
        let name = v8::String::new(scope, "message")?;
        // An own property of an error that V8 has just made.
        let message = error.get(scope, name.into())?.to_rust_string_lossy(scope);
        let kind = error.get_constructor_name().to_rust_string_lossy(scope);
        v8::String::new(scope, &format!("{kind}: {message}"))
    });
    described.map_or_else(|| v8::undefined(scope).into(), Into::into)
}

/// REPL mode resolves its promise with an object that contains the completion value, so that a promise as completion value is not awaited.
pub fn completion_value<'s>(scope: &mut v8::PinScope<'s, '_>, promise: v8::Local<'s, v8::Promise>) -> v8::Local<'s, v8::Value> {
    let wrapped = promise.result(scope);
    let value = v8::Local::<v8::Object>::try_from(wrapped).ok().and_then(|holder| {
        let name = v8::String::new(scope, ".repl_result")?;
        holder.get(scope, name.into())
    });
    value.unwrap_or_else(|| v8::undefined(scope).into())
}
