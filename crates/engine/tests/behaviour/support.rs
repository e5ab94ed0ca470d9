//! An engine for tests, and short helpers to check the outcome of runs.

use heapstead_engine::{Artifacts, Config, Engine, HeapImage, Job, Kind, Outcome};
use heapstead_types::{BudgetHolder, Failure, Limits};

pub async fn engine() -> Engine {
    engine_with(|_| {}).await
}

pub async fn engine_with(change: impl FnOnce(&mut Config)) -> Engine {
    let mut config = Config::new(Artifacts::find().expect("run `make build`"));
    change(&mut config);
    Engine::start(config).await.expect("the engine starts")
}

pub fn job(code: &str, kind: Kind) -> Job {
    Job {
        code: code.into(),
        kind,
        limits: Limits { timeout_secs: 20, ..Limits::default() },
        headers: vec![],
        replay: None,
        holder: BudgetHolder::default(),
    }
}

pub async fn run(engine: &Engine, code: &str, kind: Kind) -> (String, Outcome) {
    let (output, outcome) = engine.submit(job(code, kind)).expect("accepted").finish().await;
    (String::from_utf8(output).expect("output is UTF-8"), outcome)
}

/// A chain of runs, each on the heap of the last completed run.
pub struct Chain {
    engine: Engine,
    pub heap: Option<HeapImage>,
}

impl Chain {
    pub async fn start() -> Self {
        Self { engine: engine().await, heap: None }
    }

    pub fn on(engine: &Engine, heap: Option<HeapImage>) -> Self {
        Self { engine: engine.clone(), heap }
    }

    /// The result of a run that must complete.
    pub async fn result(&mut self, code: &str) -> String {
        match run(&self.engine, code, Kind::Stateful(self.heap.clone())).await {
            (_, Outcome::Completed { result, heap, .. }) => {
                self.heap = heap;
                result
            }
            (output, other) => panic!("{code}\n  ended as {other:?}\n  after writing {output:?}"),
        }
    }

    /// The output of a run that must complete.
    pub async fn output(&mut self, code: &str) -> String {
        let (output, outcome) = run(&self.engine, code, Kind::Stateful(self.heap.clone())).await;
        let Outcome::Completed { heap, .. } = outcome else { panic!("{code}\n  ended as {outcome:?}\n  after writing {output:?}") };
        self.heap = heap;
        output
    }

    /// The failure of a run that must fail. The heap does not change.
    pub async fn failure(&mut self, code: &str) -> Failure {
        match run(&self.engine, code, Kind::Stateful(self.heap.clone())).await {
            (_, Outcome::Failed(failure)) => failure,
            (_, other) => panic!("{code}\n  ended as {other:?}"),
        }
    }

    pub fn heap_bytes(&self) -> u64 {
        self.heap.as_ref().map_or(0, HeapImage::length)
    }
}

/// Runs each piece of code on a fresh heap and compares its result.
pub async fn check_results(cases: &[(&str, &str)]) {
    let engine = engine().await;
    for (code, expected) in cases {
        assert_eq!(Chain::on(&engine, None).result(code).await, *expected, "{code}");
    }
}

/// Whether the long forms of tests are enabled: `make torture`.
pub fn torture() -> bool {
    std::env::var_os("HEAPSTEAD_TORTURE").is_some()
}
