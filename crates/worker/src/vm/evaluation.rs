//! Evaluates the code of a run: compiles it, runs the event loop, describes the result.

use super::normal_form::UndefinedAddress;
use super::realm::Realm;
use super::repl::{self, CompileError, Evaluation, Repl};
use super::state::State;
use super::{event_loop, internals, memory};
use crate::{Channel, Javascript};
use heapstead_javascript::{Goal, Stripped, as_object_literal, could_be_typescript, strip_types};
use heapstead_types::{Failure, digest, without_keep_result};
use heapstead_wire::{Derivation, FromWorker, RefusedScript, RunNumber, RunSettings, ScriptForm};

/// The file name of the code in error stacks.
const JAVASCRIPT: &str = "main.js";
const TYPESCRIPT: &str = "main.ts";
/// V8's error for a source that is nested too deeply for its parser.
const TOO_DEEP: &str = "RangeError: Maximum call stack size exceeded";
/// V8 does not compile it.
const NO_SCRIPT: &str = ")";

/// The code of a run and its settings.
pub struct Program<'a> {
    pub run: RunNumber,
    pub settings: &'a RunSettings,
    pub code: &'a str,
    /// Of a replay: the code is the JavaScript that ran, in this form.
    pub form: Option<&'a ScriptForm>,
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
    /// Whether the globals of the next run are defined already.
    is_installed: bool,
}

impl Restored {
    /// Does for the next run what can be done before it is known.
    pub fn prepare(&mut self, isolate: &mut v8::Isolate) {
        v8::scope!(let scope, isolate);
        let context = v8::Local::new(scope, &self.context);
        let scope = &mut v8::ContextScope::new(scope, context);
        Realm::new(v8::Local::new(scope, &self.base)).install(scope);
        self.is_installed = true;
        if let Some(repl) = &self.repl {
            repl.prepare();
        }
    }

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
/// context from the heap, later ones continue in it. `javascript` is set once V8 has compiled it.
pub fn execute(
    isolate: &mut v8::Isolate,
    channel: &Channel,
    program: &Program<'_>,
    restored: &mut Option<Restored>,
    javascript: &mut Option<Javascript>,
) -> Result<String, Failure> {
    let Program { run, settings, code, form, stateful, keeps_repl } = *program;
    let result = {
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
        if !restored.as_ref().is_some_and(|restored| restored.is_installed) {
            realm.install(scope);
        }
        realm.begin(scope, &settings.headers);
        let attached = restored.as_mut().and_then(|restored| restored.repl.take());
        let repl = attached.unwrap_or_else(|| Repl::attach(scope, &realm));
        scope.set_prepare_stack_trace_callback(prepare_stack_trace);
        let evaluator = Evaluator { channel, run, realm: &realm, repl: &repl };
        let Running { main, script } = match form {
            Some(form) => evaluator.evaluate_again(scope, code, form.derivation())?,
            None => evaluator.evaluate(scope, code)?,
        };
        let keeps_result = script.derivation.keeps_result;
        *javascript = Some(script.into_javascript());
        event_loop::run(scope, &realm, channel, main)?;
        let value = repl::completion_value(scope, main);
        let result = realm.describe_result(scope, value)?;
        if keeps_result {
            realm.keep_result(scope, value);
        }
        let repl = if keeps_repl {
            Some(repl)
        } else {
            repl.detach(scope);
            None
        };
        if stateful {
            realm.end(scope)?;
            *restored = Some(Restored { context: v8::Global::new(scope, context), base: realm.global(scope), repl, is_installed: false });
        }
        result
    };
    if stateful {
        memory::check_live(isolate)?;
    }
    Ok(result)
}

/// The JavaScript that V8 evaluates.
struct Script {
    javascript: String,
    derivation: Derivation,
}

impl Script {
    fn unchanged(code: &str) -> Self {
        Self { javascript: code.to_owned(), derivation: Derivation::default() }
    }

    fn from(stripped: Stripped, is_typescript: bool) -> Self {
        let derivation = Derivation { is_typescript, positions: stripped.segments, ..Derivation::default() };
        Self { javascript: stripped.code, derivation }
    }

    fn into_javascript(self) -> Javascript {
        let form = ScriptForm::new(&self.derivation);
        let is_source = form.as_ref().is_some_and(ScriptForm::is_source);
        Javascript { text: if is_source { String::new() } else { self.javascript }, form }
    }
}

/// A script that V8 has compiled, and the promise of its completion value.
struct Running<'s> {
    main: v8::Local<'s, v8::Promise>,
    script: Script,
}

/// Evaluates the code of one run.
struct Evaluator<'a, 's> {
    channel: &'a Channel,
    run: RunNumber,
    realm: &'a Realm<'s>,
    repl: &'a Repl,
}

impl<'s> Evaluator<'_, 's> {
    /// Evaluates a source: unchanged if V8 compiles it, otherwise with its types stripped.
    fn evaluate(&self, scope: &mut v8::PinScope<'s, '_>, source: &str) -> Result<Running<'s>, Failure> {
        let kept = without_keep_result(source);
        let code = kept.unwrap_or(source);
        let (mut refused, mut refused_error) = (None, None);
        if !could_be_typescript(code) {
            let mut script = match as_object_literal(code) {
                Some(literal) => Script::from(literal, false),
                None => Script::unchanged(code),
            };
            script.derivation.keeps_result = kept.is_some();
            match self.try_script(scope, &script)? {
                Ok(main) => return Ok(Running { main, script }),
                Err(error) => (refused, refused_error) = (Some(RefusedScript { positions: script.derivation.positions }), Some(error)),
            }
        }
        if refused_error.as_ref().is_some_and(|error: &CompileError| error.message.starts_with(TOO_DEEP)) {
            return Err(Failure::Syntax(format!("{TOO_DEEP}: the source is nested too deeply to parse")));
        }
        self.channel.send(&FromWorker::Parsing { run: self.run });
        let (mut script, by_stripper) = match strip_types(code, Goal::Either) {
            Ok(stripped) if stripped.code == code => (Script::unchanged(code), None),
            Ok(stripped) => (Script::from(stripped, true), None),
            Err(error) => (Script::unchanged(code), Some(error.into())),
        };
        script.derivation = Derivation { keeps_result: kept.is_some(), refused, ..script.derivation };
        match self.try_script(scope, &script)? {
            Ok(main) => Ok(Running { main, script }),
            Err(error) => Err(syntax_failure(code, refused_error.unwrap_or(error), by_stripper)),
        }
    }

    /// Evaluates JavaScript that ran before. V8 counts the scripts it has refused too, and the count is part of every snapshot.
    fn evaluate_again(&self, scope: &mut v8::PinScope<'s, '_>, javascript: &str, derivation: Derivation) -> Result<Running<'s>, Failure> {
        if let Some(refused) = &derivation.refused {
            let _ = self.register(scope, false, refused.positions.as_deref());
            let _ = self.repl.evaluate(scope, NO_SCRIPT, JAVASCRIPT);
        }
        let script = Script { javascript: javascript.to_owned(), derivation };
        match self.try_script(scope, &script)? {
            Ok(main) => Ok(Running { main, script }),
            Err(error) => Err(syntax_failure(javascript, error, None)),
        }
    }

    fn try_script(
        &self,
        scope: &mut v8::PinScope<'s, '_>,
        script: &Script,
    ) -> Result<Result<v8::Local<'s, v8::Promise>, CompileError>, Failure> {
        let name = self.register(scope, script.derivation.is_typescript, script.derivation.positions.as_deref());
        self.channel.send(&FromWorker::Started { run: self.run });
        match self.repl.evaluate(scope, &script.javascript, &name) {
            Evaluation::Promise(main) => Ok(Ok(main)),
            Evaluation::DoesNotCompile(error) => Ok(Err(error)),
            Evaluation::Stopped => Err(memory::stop_failure("evaluation")),
        }
    }

    /// Stores the position table of a script on the heap, if it has one. Returns the script name in V8.
    fn register(&self, scope: &mut v8::PinScope<'s, '_>, is_typescript: bool, positions: Option<&[i32]>) -> String {
        let shown = if is_typescript { TYPESCRIPT } else { JAVASCRIPT };
        let Some(positions) = positions else { return shown.to_owned() };
        // Named after its position table, so that later runs find the table, and equal tables are stored once.
        let numbers: Vec<String> = positions.iter().map(i32::to_string).collect();
        let name = format!("{:08x}.{shown}", digest(numbers.iter().map(String::as_str)));
        self.realm.add_positions(scope, &name, shown, positions);
        name
    }
}

fn prepare_stack_trace<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    error: v8::Local<'s, v8::Value>,
    sites: v8::Local<'s, v8::Array>,
) -> v8::Local<'s, v8::Value> {
    if repl::is_compiling() {
        return repl::describe_refusal(scope, error);
    }
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
