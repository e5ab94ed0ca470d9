//! Hot code: eight kernels in a stateful run, against a stateless one, and against the V8 host as plain Node.

use crate::fail;
use crate::report::{Bar, Report, Row};
use crate::sample::{Effort, Samples};
use heapstead_engine::{Artifacts, Config, Engine, Job, Kind, Outcome};
use heapstead_types::{BudgetHolder, Limits};
use std::process::Command;

const KERNELS: [(&str, &str); 8] = [
    ("recursion", "function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) } fib(30)"),
    ("integer loop", "let a = 0; for (let i = 0; i < 3e7; i++) a = (a + i * 3) | 0; a"),
    (
        "float matrix",
        "const m = 160, x = new Float64Array(m * m).fill(1.5), y = new Float64Array(m * m);
         for (let i = 0; i < m; i++) for (let j = 0; j < m; j++) { let s = 0; for (let k = 0; k < m; k++) s += x[i * m + k] * x[k * m + j]; y[i * m + j] = s } y[7]",
    ),
    (
        "sort with comparator",
        "let s = 1; const l = Array.from({ length: 1e5 }, () => ({ v: (s = (s * 16807) % 2147483647) })); l.sort((p, q) => p.v - q.v)[0].v",
    ),
    (
        "CSV",
        "const rows = Array.from({ length: 6e4 }, (_, i) => `${i},name ${i},${i * 1.5}`).join('\\n');
         let sum = 0; for (const line of rows.split('\\n')) sum += Number(line.split(',')[2]); sum",
    ),
    (
        "JSON",
        "const o = Array.from({ length: 3e4 }, (_, i) => ({ i, name: 'n' + i, tags: [i, i + 1] }));
         let t = 0; for (let r = 0; r < 3; r++) t += JSON.parse(JSON.stringify(o)).length; t",
    ),
    (
        "regular expressions",
        "let c = 0; const re = /(\\w+)@(\\w+)\\.com/g; const text = 'ann@example.com, bob@test.com; '.repeat(4e4); for (const m of text.matchAll(re)) c += m[1].length; c",
    ),
    ("Map", "const map = new Map(); for (let i = 0; i < 4e5; i++) map.set(i % 50000, (map.get(i % 50000) ?? 0) + i); map.size"),
];

pub async fn measure(artifacts: &Artifacts, effort: Effort, report: &mut Report) {
    eprintln!("measuring hot code …");
    let engine = Engine::start(Config::new(artifacts.clone())).await.unwrap_or_else(|error| fail(&error.to_string()));
    let (mut to_stateless, mut to_node, mut details) = (Vec::new(), Vec::new(), Vec::new());
    for (name, code) in KERNELS {
        let code = format!(
            "(() => {{ const began = performance.now(); (0, eval)({}); return performance.now() - began }})()",
            serde_json::json!(format!("{{ {code} }}"))
        );
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..effort.choose(5, 15) {
            times[0].push(in_engine(&engine, &code, Kind::Stateful(None)).await);
            times[1].push(in_engine(&engine, &code, Kind::Stateless).await);
            times[2].push(in_node(artifacts, &code));
        }
        let [stateful, stateless, node] = times.map(|times| Samples::new(times).median());
        to_stateless.push(stateful / stateless);
        to_node.push(stateful / node);
        details.push(format!("{name} {stateful:.0}/{stateless:.0}/{node:.0}"));
    }
    let detail = format!("ms stateful/stateless/Node: {}", details.join(", "));
    for (what, ratios, most) in
        [("eight kernels, stateful against stateless", to_stateless, 1.1), ("eight kernels, stateful against plain Node", to_node, 1.25)]
    {
        let mean = (ratios.iter().map(|ratio: &f64| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
        let samples = Samples::new(ratios);
        let spread = (samples.quantile(0.0), samples.quantile(1.0));
        report.add(Row::new(what, " ×", Bar::AtMost(most), mean, spread, detail.clone()));
    }
}

/// The time that the code measures, in milliseconds.
async fn in_engine(engine: &Engine, code: &str, kind: Kind) -> f64 {
    let limits = Limits { heap_mb: 256, ..Limits::default() };
    let job = Job { code: code.into(), kind, limits, headers: vec![], replay: None, holder: BudgetHolder::default() };
    let execution = engine.submit(job).unwrap_or_else(|refused| fail(&refused.to_string()));
    match execution.finish().await.1 {
        Outcome::Completed { result, .. } => parsed(&result),
        other => fail(&format!("a kernel ended as {other:?}")),
    }
}

fn in_node(artifacts: &Artifacts, code: &str) -> f64 {
    let ran = Command::new(&artifacts.host).args(["-p", code]).output().unwrap_or_else(|error| fail(&error.to_string()));
    parsed(String::from_utf8_lossy(&ran.stdout).trim())
}

fn parsed(ms: &str) -> f64 {
    ms.parse().unwrap_or_else(|_| fail(&format!("`{ms}` is not a time")))
}
