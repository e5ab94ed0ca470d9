//! Evaluates the code of a run: compiles it, runs the event loop, describes the result.

use super::normal_form::UndefinedAddress;
use super::realm::Realm;
use super::repl::{self, CompileError, Evaluation, Repl};
use super::state::State;
use super::{event_loop, internals, memory};
use crate::Channel;
use heapstead_javascript::{Goal, Stripped, as_object_literal, could_be_typescript, strip_types};
use heapstead_types::{Failure, digest, without_keep_result};
use heapstead_wire::{FromWorker, RunNumber, RunSettings};

/// The file name of the code in error stacks.
const JAVASCRIPT: &str = "main.js";
const TYPESCRIPT: &str = "main.ts";
/// V8's error for a source that is nested too deeply for its parser.
const TOO_DEEP: &str = "RangeError: Maximum call stack size exceeded";

/// The code of a run and its settings.
pub struct Program<'a> {
    pub run: RunNumber,
    pub settings: &'a RunSettings,
    pub code: &'a str,
    /// Whether later runs, or a snapshot, continue from its state.
    pub stateful: bool,
    /// Whether the inspector stays attached for the next run.
    pub keeps_repl: bool,
}

/// The context of an isolate, from its first run on. Must be dropped before the snapshot, because V8 can't save global handles.
pub struct Restored {
    context: v8::Global<v8::Context>,
    base: v8::Global<v8::Object>,
    /// Attached, if another run is expected.
    repl: Option<Repl>,
}

impl Restored {
    /// Does what every run does besides its code. None of it calls code of the heap's owner, or leaves anything in the heap but garbage.
    pub fn warm_up(&self, isolate: &mut v8::Isolate) {
        v8::scope!(let scope, isolate);
        let context = v8::Local::new(scope, &self.context);
        let scope = &mut v8::ContextScope::new(scope, context);
        let realm = Realm::new(v8::Local::new(scope, &self.base));
        realm.install(scope);
        realm.warm_up_ends(scope);
        if let Some(repl) = &self.repl {
            repl.warm_up(scope);
        }
    }

    /// Prepares the context for a snapshot.
    pub fn into_snapshot(self, isolate: &mut v8::Isolate) -> UndefinedAddress {
        v8::scope!(let scope, isolate);
        let context = v8::Local::new(scope, self.context);
        let scope = &mut v8::ContextScope::new(scope, context);
        if let Some(repl) = self.repl {
            repl.detach(scope);
        }
        Realm::new(v8::Local::new(scope, self.base)).add_to_snapshot(scope);
        scope.set_default_context(context);
        UndefinedAddress::of(scope)
    }
}

/// Runs a program in the context of the isolate: evaluates it, runs the event loop, describes its completion value. The first run restores the
/// context from the heap, later ones continue in it.
pub fn execute(
    isolate: &mut v8::Isolate,
    channel: &Channel,
    program: &Program<'_>,
    restored: &mut Option<Restored>,
) -> Result<Executed, Failure> {
    let Program { run, settings, code, stateful, keeps_repl } = *program;
    let executed = {
        v8::scope!(let scope, isolate);
        let context = match restored {
            Some(restored) => v8::Local::new(scope, &restored.context),
            None => v8::Context::new(scope, Default::default()),
        };
        let scope = &mut v8::ContextScope::new(scope, context);
        if stateful {
            internals::allow_optimised_code(scope);
        }
        let realm = match restored {
            Some(restored) => Some(Realm::new(v8::Local::new(scope, &restored.base))),
            None => Realm::restore(scope),
        };
        let realm = realm.ok_or_else(|| Failure::NoWorker("the heap has no `base` object".into()))?;
        realm.share(scope);
        realm.install(scope);
        realm.begin(scope, &settings.headers);
        let attached = restored.as_mut().and_then(|restored| restored.repl.take());
        let repl = attached.unwrap_or_else(|| Repl::attach(scope, &realm));
        scope.set_prepare_stack_trace_callback(prepare_stack_trace);
        let kept = without_keep_result(code);
        let code = kept.unwrap_or(code);
        let (main, javascript) = Evaluator { channel, run, realm: &realm, repl: &repl, code }.evaluate(scope)?;
        event_loop::run(scope, &realm, channel, main)?;
        let value = repl::completion_value(scope, main);
        let result = realm.describe_result(scope, value)?;
        if kept.is_some() {
            realm.keep_result(scope, value);
        }
        let javascript = javascript.or_else(|| kept.map(str::to_owned));
        let repl = if keeps_repl {
            Some(repl)
        } else {
            repl.detach(scope);
            None
        };
        if stateful {
            realm.end(scope)?;
            *restored = Some(Restored { context: v8::Global::new(scope, context), base: realm.global(scope), repl });
        }
        Executed { result, javascript }
    };
    if stateful {
        memory::check_live(isolate)?;
    }
    Ok(executed)
}

/// A program that has completed.
pub struct Executed {
    pub result: String,
    /// The JavaScript that ran, if it differs from the source.
    pub javascript: Option<String>,
}

/// The promise of the completion value, and the JavaScript that runs if it differs from the source.
type Running<'s> = (v8::Local<'s, v8::Promise>, Option<String>);

/// The JavaScript that V8 evaluates.
struct Script {
    javascript: String,
    /// The script name in V8, and the file name in error stacks.
    name: String,
    shown: &'static str,
    segments: Option<Vec<i32>>,
}

impl Script {
    fn unchanged(code: &str) -> Self {
        Self { javascript: code.to_owned(), name: JAVASCRIPT.to_owned(), shown: JAVASCRIPT, segments: None }
    }

    fn from(stripped: Stripped, shown: &'static str) -> Self {
        let name = match &stripped.segments {
            // Named after its position table, so that later runs find the table, and equal tables are stored once.
            Some(segments) => {
                format!("{:08x}.{shown}", digest(segments.iter().map(i32::to_string).collect::<Vec<_>>().iter().map(String::as_str)))
            }
            None => shown.to_owned(),
        };
        Self { javascript: stripped.code, name, shown, segments: stripped.segments }
    }
}

/// Evaluates the code of one run.
struct Evaluator<'a, 's> {
    channel: &'a Channel,
    run: RunNumber,
    realm: &'a Realm<'s>,
    repl: &'a Repl,
    code: &'a str,
}

impl<'s> Evaluator<'_, 's> {
    /// Evaluates the code: unchanged if V8 compiles it, otherwise with its types stripped.
    fn evaluate(&self, scope: &mut v8::PinScope<'s, '_>) -> Result<Running<'s>, Failure> {
        let code = self.code;
        let mut refused = None;
        if !could_be_typescript(code) {
            let script = match as_object_literal(code) {
                Some(literal) => Script::from(literal, JAVASCRIPT),
                None => Script::unchanged(code),
            };
            match self.try_script(scope, script)? {
                Ok(running) => return Ok(running),
                Err(error) => refused = Some(error),
            }
        }
        if refused.as_ref().is_some_and(|error: &CompileError| error.message.starts_with(TOO_DEEP)) {
            return Err(Failure::Syntax(format!("{TOO_DEEP}: the source is nested too deeply to parse")));
        }
        self.channel.send(&FromWorker::Parsing { run: self.run });
        let (script, by_stripper) = match strip_types(code, Goal::Either) {
            Ok(stripped) if stripped.code == code => (Script::unchanged(code), None),
            Ok(stripped) => (Script::from(stripped, TYPESCRIPT), None),
            Err(error) => (Script::unchanged(code), Some(error.into())),
        };
        self.try_script(scope, script)?.map_err(|error| syntax_failure(code, refused.unwrap_or(error), by_stripper))
    }

    fn try_script(&self, scope: &mut v8::PinScope<'s, '_>, script: Script) -> Result<Result<Running<'s>, CompileError>, Failure> {
        if let Some(segments) = &script.segments {
            self.realm.add_positions(scope, &script.name, script.shown, segments);
        }
        self.channel.send(&FromWorker::Started { run: self.run });
        match self.repl.evaluate(scope, &script.javascript, &script.name) {
            Evaluation::Promise(promise) => Ok(Ok((promise, Some(script.javascript).filter(|javascript| javascript != self.code)))),
            Evaluation::DoesNotCompile(error) => Ok(Err(error)),
            Evaluation::Stopped => Err(memory::stop_failure("evaluation")),
        }
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

/// Of the two errors, reports the one at the later position: V8 stops at the first type annotation, the type stripper does not.
fn syntax_failure(code: &str, by_v8: CompileError, by_stripper: Option<CompileError>) -> Failure {
    let further = match by_stripper {
        Some(error) if (error.line, error.column) > (by_v8.line, by_v8.column) => error,
        _ => by_v8,
    }
    .within(code);
    Failure::Syntax(format!("{}\n    at {JAVASCRIPT}:{}:{}", further.message, further.line, further.column))
}

pub fn refuse_import<'s, 'i>(
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
