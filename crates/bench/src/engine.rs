//! Benchmarks of the engine against raw V8.

use crate::fail;
use crate::raw_loop::RawLoop;
use crate::report::{Bar, Report, Row};
use crate::sample::{Effort, Samples};
use heapstead_engine::{Artifacts, Config, Engine, Event, HeapImage, Job, Kind, Outcome};
use heapstead_types::{BudgetHolder, Limits};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const CODE: &str = "1 + 1";

pub async fn measure(artifacts: &Artifacts, effort: Effort, report: &mut Report) {
    let engine = Engine::start(Config::new(artifacts.clone())).await.unwrap_or_else(|error| fail(&error.to_string()));
    let mut raw = RawLoop::start(artifacts).unwrap_or_else(|error| fail(&error.to_string()));
    eprintln!("measuring …");
    pairs(&engine, &mut raw, effort, report, "stateful", 1.5).await;
    pairs(&engine, &mut raw, effort, report, "stateless", 2.5).await;
    chains(artifacts, &engine, effort, report).await;
    sizes(&mut raw, report);
    latency(&engine, effort, report).await;
}

pub async fn run(engine: &Engine, code: &str, kind: Kind) -> Option<HeapImage> {
    let job = Job { code: code.into(), kind, limits: Limits::default(), headers: vec![], replay: None, holder: BudgetHolder::default() };
    let execution = engine.submit(job).unwrap_or_else(|refused| fail(&refused.to_string()));
    match execution.finish().await.1 {
        Outcome::Completed { heap, .. } => heap,
        other => fail(&format!("a run ended as {other:?}")),
    }
}

/// Alternates one run on the engine with one on raw V8.
async fn pairs(engine: &Engine, raw: &mut RawLoop, effort: Effort, report: &mut Report, what: &'static str, most: f64) {
    let kind = || if what == "stateful" { Kind::Stateful(None) } else { Kind::Stateless };
    let rounds = effort.choose(40, 300);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..rounds + 10 {
        let began = Instant::now();
        run(engine, CODE, kind()).await;
        let mine = began.elapsed();
        let their = raw.round(what).unwrap_or_else(|error| fail(&error.to_string()));
        if round >= 10 {
            ours.push(mine);
            theirs.push(their);
        }
    }
    let name = if what == "stateful" { "stateful run on the base heap, against raw V8" } else { "stateless run, against raw V8" };
    report.add_pairs(name, &ours, &theirs, most);
}

/// Executions per second of two parallel chains against one, in alternating windows. Raw V8 in two processes is measured in between,
/// because two shared cores do not give twice the throughput of one.
async fn chains(artifacts: &Artifacts, engine: &Engine, effort: Effort, report: &mut Report) {
    // Many short windows, because the load on the machine changes from second to second.
    let window = Duration::from_millis(500);
    let (mut one, mut two, mut raw) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..effort.choose(9, 41) {
        one.push(chain(engine.clone(), window).await);
        let (left, right) = tokio::join!(tokio::spawn(chain(engine.clone(), window)), tokio::spawn(chain(engine.clone(), window)));
        two.push(left.unwrap_or_default() + right.unwrap_or_default());
        let alone = raw_rates(artifacts, 1, window).await;
        raw.push(raw_rates(artifacts, 2, window).await / alone);
    }
    let ratios = Samples::new(two.iter().zip(&one).map(|(two, one)| two / one).collect());
    let (two, one, raw) = (Samples::new(two).median(), Samples::new(one).median(), Samples::new(raw).median());
    let detail = format!("{two:.0}/s against {one:.0}/s; raw V8 in two processes makes {raw:.2} × of one");
    let spread = (ratios.quantile(0.1), ratios.quantile(0.9));
    report.add(Row::new("two chains on two cores, against one", " ×", Bar::AtLeast(1.7), ratios.median(), spread, detail));
}

/// Total rounds per second of raw V8 in this many parallel processes.
async fn raw_rates(artifacts: &Artifacts, processes: usize, window: Duration) -> f64 {
    let working: Vec<_> = (0..processes)
        .map(|_| {
            let mut raw = RawLoop::start(artifacts).unwrap_or_else(|error| fail(&error.to_string()));
            tokio::task::spawn_blocking(move || {
                raw.round("stateful").unwrap_or_else(|error| fail(&error.to_string()));
                let (began, mut rounds) = (Instant::now(), 0);
                while began.elapsed() < window {
                    raw.round("stateful").unwrap_or_else(|error| fail(&error.to_string()));
                    rounds += 1;
                }
                f64::from(rounds) / began.elapsed().as_secs_f64()
            })
        })
        .collect();
    let mut sum = 0.0;
    for work in working {
        sum += work.await.unwrap_or_default();
    }
    sum
}

async fn chain(engine: Engine, window: Duration) -> f64 {
    let began = Instant::now();
    let (mut runs, mut heap) = (0, None);
    while began.elapsed() < window {
        heap = run(&engine, "globalThis.n = (globalThis.n ?? 0) + 1", Kind::Stateful(heap)).await;
        runs += 1;
    }
    f64::from(runs) / began.elapsed().as_secs_f64()
}

fn sizes(raw: &mut RawLoop, report: &mut Report) {
    let (empty, base) = raw.sizes().unwrap_or_else(|error| fail(&error.to_string()));
    let ratio = base / empty;
    let detail = format!("{base:.0} bytes against {empty:.0}");
    report.add(Row::new("bytes of the base heap, against V8's empty snapshot", " ×", Bar::AtMost(1.6), ratio, (ratio, ratio), detail));
}

/// Latency from `console.log` to the reader: the code prints the time, and the reader compares it with its own clock.
async fn latency(engine: &Engine, effort: Effort, report: &mut Report) {
    let lines = effort.choose(30, 200);
    let code = format!(
        "for (let i = 0; i < {lines}; i++) {{ console.log(performance.timeOrigin + performance.now()); await new Promise(r => setTimeout(r, 5)) }}"
    );
    let job = Job {
        code: code.into(),
        kind: Kind::Stateless,
        limits: Limits::default(),
        headers: vec![],
        replay: None,
        holder: BudgetHolder::default(),
    };
    let mut execution = engine.submit(job).unwrap_or_else(|refused| fail(&refused.to_string()));
    let mut delays = Vec::new();
    while let Some(event) = execution.next_event().await {
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1000.0;
        match event {
            Event::Output(text) => {
                delays.extend(String::from_utf8_lossy(&text).trim().parse::<f64>().map(|written_ms| now_ms - written_ms))
            }
            Event::Started { .. } | Event::OutputDropped | Event::Recorded(..) => {}
            Event::Ended(Outcome::Completed { .. }) => break,
            Event::Ended(other) => fail(&format!("the run for latency ended as {other:?}")),
        }
    }
    let samples = Samples::new(delays);
    let spread = (samples.quantile(0.1), samples.quantile(0.9));
    let detail = format!("p99 {:.2} ms over {lines} lines", samples.quantile(0.99));
    report.add(Row::new("from console.log to the reader", " ms", Bar::AtMost(5.0), samples.median(), spread, detail));
}
