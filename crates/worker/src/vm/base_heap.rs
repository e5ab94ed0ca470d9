//! The base heap: the snapshot that fresh runs start from, made from `js/*.js` at build time.
//!
//! The file is one line of JSON, the stamp, which names the engine and the JavaScript it was made from, and then the snapshot. If the stamp is
//! not that of this build, the base heap is made again, in memory.

use super::normal_form::{self, UndefinedAddress};
use super::{isolate, natives, platform, realm::Realm};
use heapstead_types::{digest, limits::HEAP_MB_DEFAULT};
use std::io::Write;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::sync::OnceLock;

/// Name and text of `js/*.js`, in the order they are evaluated.
const SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// An arbitrary number, the same in every build.
const IDENTITY_SEED: u64 = 1;

static LOADED: OnceLock<&'static [u8]> = OnceLock::new();

#[derive(Debug, thiserror::Error)]
pub enum BaseHeapError {
    #[error("{file}: {error}")]
    Source { file: &'static str, error: String },
    #[error("V8 made no snapshot")]
    NoSnapshot,
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

pub struct BaseHeap {
    pub snapshot: Vec<u8>,
}

/// Identifies what a base heap was made from: the engine and the JavaScript in it.
fn stamp() -> String {
    let sources = digest(SOURCES.iter().flat_map(|(name, text)| [*name, *text]));
    serde_json::json!({ "engine": platform::build_id().to_string(), "sources": format!("{sources:08x}") }).to_string()
}

impl BaseHeap {
    pub fn write(&self, file: &Path) -> Result<(), BaseHeapError> {
        let mut out = std::fs::File::create(file)?;
        writeln!(out, "{}", stamp())?;
        Ok(out.write_all(&self.snapshot)?)
    }
}

/// The base heap of this process.
pub fn loaded() -> &'static [u8] {
    LOADED.get().copied().unwrap_or_default()
}

/// Loads the base heap from `file` if it was made by this build, otherwise makes it.
pub fn load(file: &Path) -> Result<(), BaseHeapError> {
    let fitting = std::fs::read(file).ok().and_then(|bytes| {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        (bytes[..end] == *stamp().as_bytes()).then(|| bytes[end + 1..].to_vec())
    });
    let snapshot = match fitting {
        Some(snapshot) => snapshot,
        None => build_in_child()?,
    };
    LOADED.get_or_init(|| snapshot.leak());
    Ok(())
}

/// Makes the base heap in a child process, so that the zygote itself runs no JavaScript.
fn build_in_child() -> Result<Vec<u8>, BaseHeapError> {
    let descriptor = rustix::fs::memfd_create("base-heap", rustix::fs::MemfdFlags::CLOEXEC).map_err(std::io::Error::from)?;
    let mut file = std::fs::File::from(descriptor);
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        0 => {
            let made = build().and_then(|heap| Ok(file.write_all(&heap.snapshot)?));
            if let Err(error) = &made {
                eprintln!("base heap: {error}");
            }
            // SAFETY: always allowed.
            unsafe { libc::_exit(i32::from(made.is_err())) }
        }
        pid => {
            let mut status = 0;
            // SAFETY: waits for the child that was just forked.
            unsafe { libc::waitpid(pid, &mut status, 0) };
            std::io::Seek::rewind(&mut file)?;
            let mut snapshot = Vec::new();
            std::io::Read::read_to_end(&mut file, &mut snapshot)?;
            if status == 0 && !snapshot.is_empty() { Ok(snapshot) } else { Err(BaseHeapError::NoSnapshot) }
        }
    }
}

/// Makes the base heap in two steps: a snapshot after the sources were evaluated, without compiled code, and a second one after
/// [`Realm::warm_up`]. The base heap so contains the bytecode of the functions that every run calls, and no other.
pub fn build() -> Result<BaseHeap, BaseHeapError> {
    platform::initialize();
    platform::seed_identities(IDENTITY_SEED);
    let cold = snapshot(isolate::empty(HEAP_MB_DEFAULT), v8::FunctionCodeHandling::Clear, evaluate_sources)?;
    let warm = snapshot(isolate::saveable(cold.leak(), HEAP_MB_DEFAULT), v8::FunctionCodeHandling::Keep, |scope| {
        let realm = Realm::restore(scope).ok_or(BaseHeapError::NoSnapshot)?;
        realm.warm_up(scope);
        Ok(realm)
    })?;
    Ok(BaseHeap { snapshot: warm })
}

/// Takes a snapshot of the isolate's context after `prepare`.
fn snapshot(
    isolate: v8::OwnedIsolate,
    code: v8::FunctionCodeHandling,
    prepare: impl for<'s, 'i> FnOnce(&mut v8::PinScope<'s, 'i>) -> Result<Realm<'s>, BaseHeapError>,
) -> Result<Vec<u8>, BaseHeapError> {
    // Not dropped on an error, because V8 can't dispose of such an isolate before its snapshot was taken. The process exits then.
    let mut isolate = ManuallyDrop::new(isolate);
    let undefined = {
        v8::scope!(let scope, &mut *isolate);
        let context = v8::Context::new(scope, Default::default());
        let scope = &mut v8::ContextScope::new(scope, context);
        prepare(scope)?.add_to_snapshot(scope);
        scope.set_default_context(context);
        UndefinedAddress::of(scope)
    };
    let blob = ManuallyDrop::into_inner(isolate).create_blob(code).ok_or(BaseHeapError::NoSnapshot)?;
    let mut snapshot = blob.to_vec();
    normal_form::normalize(&mut snapshot, undefined);
    Ok(snapshot)
}

fn evaluate_sources<'s>(scope: &mut v8::PinScope<'s, '_>) -> Result<Realm<'s>, BaseHeapError> {
    let null = v8::null(scope).into();
    let base = v8::Object::with_prototype_and_properties(scope, null, &[], &[]);
    let host = v8::Object::with_prototype_and_properties(scope, null, &[], &[]);
    natives::install(scope, host);
    for (file, text) in SOURCES {
        evaluate(scope, file, text, base, host).map_err(|error| BaseHeapError::Source { file, error })?;
    }
    Ok(Realm::new(base))
}

/// Evaluates one file as the body of `function (base, host)`, in strict mode.
fn evaluate(
    scope: &mut v8::PinScope<'_, '_>,
    file: &str,
    text: &str,
    base: v8::Local<'_, v8::Object>,
    host: v8::Local<'_, v8::Object>,
) -> Result<(), String> {
    v8::tc_scope!(let caught, scope);
    let wrapped = heapstead_javascript::minify_script(&format!("(function (base, host) {{ \"use strict\";\n{text}\n}})"))?;
    let name = format!("heapstead:{file}");
    let run = || {
        let source = v8::String::new(caught, &wrapped)?;
        let name = v8::String::new(caught, &name)?;
        let origin = v8::ScriptOrigin::new(caught, name.into(), -1, 0, false, 0, None, false, false, false, None);
        let function = v8::Script::compile(caught, source, Some(&origin))?.run(caught)?;
        let function = v8::Local::<v8::Function>::try_from(function).ok()?;
        let undefined = v8::undefined(caught).into();
        function.call(caught, undefined, &[base.into(), host.into()])
    };
    match run() {
        Some(_) => Ok(()),
        None => {
            let stack = caught.stack_trace().or_else(|| caught.exception());
            Err(stack.map_or_else(|| "unknown error".into(), |stack| stack.to_rust_string_lossy(caught)))
        }
    }
}
