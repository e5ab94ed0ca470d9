//! The raw loop, the baseline of the benchmarks: the same V8 work in one process, and nothing else. Not confined, because it runs only its own
//! code.
//!
//! Reads `stateful` and `stateless` lines and answers each with the nanoseconds that one round took. Answers `sizes` with the bytes of V8's
//! empty snapshot and of the base heap.

use super::{base_heap, isolate, platform};
use heapstead_types::limits::HEAP_MB_DEFAULT;
use std::io::BufRead;
use std::path::Path;
use std::time::Instant;

const CODE: &str = "1 + 1";

pub fn main(base_heap_file: &Path) -> i32 {
    platform::initialize();
    if let Err(error) = base_heap::load(base_heap_file) {
        eprintln!("base heap: {error}");
        return 1;
    }
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let began = Instant::now();
        match line.as_str() {
            "stateful" => drop(save(evaluate(isolate::saveable(base_heap::loaded(), HEAP_MB_DEFAULT), true))),
            "stateless" => drop(evaluate(isolate::transient(base_heap::loaded(), HEAP_MB_DEFAULT), false)),
            "sizes" => {
                println!("{} {}", save(evaluate(isolate::empty(HEAP_MB_DEFAULT), true)), base_heap::loaded().len());
                continue;
            }
            _ => return 1,
        }
        println!("{}", began.elapsed().as_nanos());
    }
    0
}

/// Restores the context, evaluates in it, and, if a snapshot will be taken, makes it the default context.
fn evaluate(mut isolate: v8::OwnedIsolate, to_be_saved: bool) -> v8::OwnedIsolate {
    {
        v8::scope!(let scope, &mut isolate);
        let context = v8::Context::new(scope, Default::default());
        let scope = &mut v8::ContextScope::new(scope, context);
        let result = v8::String::new(scope, CODE)
            .and_then(|source| v8::Script::compile(scope, source, None))
            .and_then(|script| script.run(scope))
            .and_then(|value| value.int32_value(scope));
        assert_eq!(result, Some(2), "the raw loop computes");
        if to_be_saved {
            scope.set_default_context(context);
        }
    }
    isolate
}

/// Takes a snapshot and returns its length.
fn save(isolate: v8::OwnedIsolate) -> usize {
    isolate.create_blob(v8::FunctionCodeHandling::Keep).map_or(0, |blob| blob.len())
}
