//! One execution: restore, evaluate, drain, describe, save.

use super::normal_form::{self, Unset};
use super::realm::Realm;
use super::repl::{self, CompileError, Evaluation, Repl};
use super::state::State;
use super::{base_heap, event_loop, isolate, memory, platform};
use crate::strip::{self, Stripped};
use crate::{Session, confine};
use heapstead_types::{Failure, digest};
use heapstead_wire::{Frame, Start};
use rustix::mm::{MapFlags, ProtFlags};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::fd::OwnedFd;

/// What error stacks call the code of a run.
const JAVASCRIPT: &str = "main.js";
const TYPESCRIPT: &str = "main.ts";
/// What V8 says of a source that its parser has no stack for.
const TOO_DEEP: &str = "RangeError: Maximum call stack size exceeded";

pub fn execute(session: &Session, start: &Start, code: String, descriptors: Vec<OwnedFd>) -> Result<(), Failure> {
    let mut descriptors = descriptors.into_iter();
    let heap = match start.heap_bytes {
        Some(length) => descriptors.next().and_then(|heap| map(&heap, length)).ok_or_else(|| internal("the heap can't be mapped"))?,
        None => base_heap::loaded(),
    };
    let snapshot = descriptors.next();
    platform::seed_identities(start.identity_seed);
    // Never taken down: the process ends instead.
    let mut isolate = ManuallyDrop::new(match snapshot {
        Some(_) => isolate::saveable(heap, start.heap_mb),
        None => isolate::transient(heap, start.heap_mb),
    });
    memory::watch(&mut isolate, session, start.heap_mb);
    State::install(&mut isolate, session);
    isolate.set_host_import_module_dynamically_callback(refuse_import);

    let (result, unset) = {
        v8::scope!(let scope, &mut *isolate);
        let context = v8::Context::new(scope, Default::default());
        let scope = &mut v8::ContextScope::new(scope, context);
        let realm = Realm::restore(scope).ok_or_else(|| internal("the heap holds no base"))?;
        realm.share(scope);
        realm.install(scope);
        realm.begin(scope, &start.headers);
        let repl = Repl::attach(scope, &realm);
        scope.set_prepare_stack_trace_callback(prepare_stack_trace);
        let main = evaluate(scope, session, &realm, &repl, &code)?;
        event_loop::run(scope, &realm, session, main)?;
        let value = repl::completion_value(scope, main);
        let result = realm.describe_result(scope, value)?;
        repl.detach();
        if snapshot.is_some() {
            realm.end(scope)?;
            realm.keep(scope);
            scope.set_default_context(context);
        }
        (result, Unset::of(scope))
    };
    if snapshot.is_some() {
        memory::check_live(&mut isolate)?;
    }
    session.send(&Frame::Completed(result));
    match snapshot {
        Some(descriptor) => save(session, start.heap_mb, ManuallyDrop::into_inner(isolate), unset, descriptor),
        None => Ok(()),
    }
}

fn internal(what: &str) -> Failure {
    Failure::NoWorker(what.to_owned())
}

/// The heap as memory. It stays mapped until the process ends, as V8 wants it.
fn map(heap: &OwnedFd, length: u64) -> Option<&'static [u8]> {
    let length = usize::try_from(length).ok()?;
    // SAFETY: a fresh private mapping of a descriptor that is sealed against writing, never unmapped.
    unsafe {
        let address = rustix::mm::mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::PRIVATE, heap, 0).ok()?;
        Some(std::slice::from_raw_parts(address.cast(), length))
    }
}

/// The code as it is to be evaluated.
struct Script {
    javascript: String,
    /// The name V8 knows it by, and the one that stacks show.
    name: String,
    shown: &'static str,
    segments: Option<Vec<i32>>,
}

impl Script {
    fn as_it_is(code: &str) -> Self {
        Self { javascript: code.to_owned(), name: JAVASCRIPT.to_owned(), shown: JAVASCRIPT, segments: None }
    }

    fn from(stripped: Stripped, shown: &'static str) -> Self {
        let name = match &stripped.segments {
            // A name for its positions, so that later runs still find them, and equal ones are kept once.
            Some(segments) => {
                format!("{:08x}.{shown}", digest(segments.iter().map(i32::to_string).collect::<Vec<_>>().iter().map(String::as_str)))
            }
            None => shown.to_owned(),
        };
        Self { javascript: stripped.code, name, shown, segments: stripped.segments }
    }
}

/// Evaluates the code: as it is where V8 takes it, else without its types.
fn evaluate<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    session: &Session,
    realm: &Realm<'_>,
    repl: &Repl<'s>,
    code: &str,
) -> Result<v8::Local<'s, v8::Promise>, Failure> {
    let mut refused = None;
    if !strip::is_ambiguous(code) {
        let script = match strip::as_object_literal(code) {
            Some(literal) => Script::from(literal, JAVASCRIPT),
            None => Script::as_it_is(code),
        };
        match try_script(scope, session, realm, repl, code, &script)? {
            Ok(promise) => return Ok(promise),
            Err(error) => refused = Some(error),
        }
    }
    if refused.as_ref().is_some_and(|error: &CompileError| error.message.starts_with(TOO_DEEP)) {
        return Err(Failure::Syntax(format!("{TOO_DEEP}: the source is nested too deeply to parse")));
    }
    session.send(&Frame::Parsing);
    let (script, by_stripper) = match strip::strip(code) {
        Ok(stripped) if stripped.code == code => (Script::as_it_is(code), None),
        Ok(stripped) => (Script::from(stripped, TYPESCRIPT), None),
        Err(error) => (Script::as_it_is(code), Some(error)),
    };
    try_script(scope, session, realm, repl, code, &script)?.map_err(|error| syntax_failure(code, refused.unwrap_or(error), by_stripper))
}

fn try_script<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    session: &Session,
    realm: &Realm<'_>,
    repl: &Repl<'s>,
    code: &str,
    script: &Script,
) -> Result<Result<v8::Local<'s, v8::Promise>, CompileError>, Failure> {
    if let Some(segments) = &script.segments {
        realm.add_positions(scope, &script.name, script.shown, segments);
    }
    session.send(&Frame::Evaluating((script.javascript != code).then(|| script.javascript.clone())));
    match repl.evaluate(scope, &script.javascript, &script.name) {
        Evaluation::Promise(promise) => Ok(Ok(promise)),
        Evaluation::DoesNotCompile(error) => Ok(Err(error)),
        Evaluation::Stopped => Err(memory::stop_failure("evaluation")),
    }
}

fn prepare_stack_trace<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    error: v8::Local<'s, v8::Value>,
    sites: v8::Local<'s, v8::Array>,
) -> v8::Local<'s, v8::Value> {
    let base = State::of(scope).and_then(|state| state.base.clone());
    match base {
        Some(base) => Realm::new(v8::Local::new(scope, base)).prepare_stack_trace(scope, error, sites),
        None => v8::undefined(scope).into(),
    }
}

/// Of the two complaints the one that got further into the source knows it better: V8 stops at the first type, the type stripper does not.
fn syntax_failure(code: &str, by_v8: CompileError, by_stripper: Option<CompileError>) -> Failure {
    let further = match by_stripper {
        Some(error) if (error.line, error.column) > (by_v8.line, by_v8.column) => error,
        _ => by_v8,
    }
    .within(code);
    Failure::Syntax(format!("{}\n    at {JAVASCRIPT}:{}:{}", further.message, further.line, further.column))
}

fn refuse_import<'s, 'i>(
    scope: &mut v8::PinScope<'s, 'i>,
    _options: v8::Local<'s, v8::Data>,
    _referrer: v8::Local<'s, v8::Value>,
    specifier: v8::Local<'s, v8::String>,
    _attributes: v8::Local<'s, v8::FixedArray>,
) -> Option<v8::Local<'s, v8::Promise>> {
    let resolver = v8::PromiseResolver::new(scope)?;
    let text = format!("import('{}') is not available: there are no modules, files or network here", specifier.to_rust_string_lossy(scope));
    let message = v8::String::new(scope, &text)?;
    let error = v8::Exception::type_error(scope, message);
    resolver.reject(scope, error);
    Some(resolver.get_promise(scope))
}

fn save(session: &Session, heap_mb: u32, mut isolate: v8::OwnedIsolate, unset: Unset, descriptor: OwnedFd) -> Result<(), Failure> {
    State::remove(&mut isolate);
    memory::begin_saving();
    let blob = isolate.create_blob(v8::FunctionCodeHandling::Keep).ok_or_else(|| Failure::Unsaveable("V8 made no snapshot".into()))?;
    if blob.len() as u64 > confine::snapshot_bytes_max() {
        return Err(over_quota(blob.len() as u64, heap_mb));
    }
    // SAFETY: the blob is ours alone, and V8 allocated it writable.
    normal_form::normalize(unsafe { std::slice::from_raw_parts_mut(blob.as_ptr().cast_mut(), blob.len()) }, unset);
    let unwritable = |error: std::io::Error| Failure::Unsaveable(format!("the snapshot of {} bytes can't be written: {error}", blob.len()));
    File::from(descriptor).write_all(&blob).map_err(unwritable)?;
    session.send(&Frame::Saved { length: blob.len() as u64, sha256: Sha256::digest(&*blob).into() });
    // The blob dies with the process: freeing it is not worth a moment.
    std::mem::forget(blob);
    Ok(())
}

fn over_quota(bytes: u64, heap_mb: u32) -> Failure {
    let (taken_mb, allowed_mb) = (bytes.div_ceil(1 << 20), confine::snapshot_bytes_max() >> 20);
    Failure::Unsaveable(format!(
        "its snapshot takes {taken_mb} MB, and with a cap of {heap_mb} MB it may take {allowed_mb} MB: keep less (buffers count), or raise `heap_memory_max_mb`"
    ))
}
