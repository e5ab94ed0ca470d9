//! Benchmarks of the server against its parts: the overhead of protocols, records and fair scheduling.

mod bare;
mod connection;
pub mod contexts;
mod fill;
pub mod live;
mod mcp;
mod process;
pub mod sessions;

pub use fill::known_session;

use crate::fail;
use crate::raw_loop::RawLoop;
use crate::report::{Bar, Report, Row};
use crate::sample::{Effort, Samples};
use bare::Bare;
use connection::Connection;
use heapstead_engine::{Artifacts, Config, Engine};
use mcp::{McpHttp, McpStdio};
use process::Server;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const CODE: &str = "globalThis.n = (globalThis.n ?? 0) + 1";
/// Rounds before the first measured round.
const WARM_UP: usize = 10;

pub async fn measure(artifacts: &Artifacts, effort: Effort, report: &mut Report) {
    eprintln!("measuring the server …");
    chain_over_each_protocol(artifacts, effort, report).await;
    stateless(artifacts, effort, report).await;
    many_chains(effort, report).await;
    pages(effort, report).await;
    large_stores(effort, report).await;
}

/// Consecutive runs of a chain through REST, MCP over HTTP and MCP over stdio, each right after the same run without a server.
async fn chain_over_each_protocol(artifacts: &Artifacts, effort: Effort, report: &mut Report) {
    let engine = Engine::start(Config::new(artifacts.clone())).await.unwrap_or_else(|error| fail(&error.to_string()));
    let server = Server::start(&["--http-port", "0"]);
    let mut rest = Rest { connection: server.connect().await, heap: Value::Null };
    let mut http = McpHttp::connect(&server).await;
    let mut stdio = McpStdio::start().await;
    let mut bare = Bare::new(engine);
    let rounds = effort.choose(40, 300);
    let mut times = [const { Vec::new() }; 4];
    for round in 0..rounds + WARM_UP {
        let round_times = [timed(bare.run(CODE)).await, timed(rest.run()).await, timed(http.run(CODE)).await, timed(stdio.run(CODE)).await];
        if round >= WARM_UP {
            for (times, time) in times.iter_mut().zip(round_times) {
                times.push(time);
            }
        }
    }
    let [bare, rest, http, stdio] = &times;
    let rows = [
        ("chain over REST, against engine and bare syncs", rest, 1.4),
        ("chain over MCP HTTP, against engine and bare syncs", http, 1.7),
        ("chain over MCP stdio, against engine and bare syncs", stdio, 1.7),
    ];
    for (what, ours, most) in rows {
        report.add_pairs(what, ours, bare, most);
    }
}

async fn timed(work: impl Future<Output = ()>) -> Duration {
    let began = Instant::now();
    work.await;
    began.elapsed()
}

/// A chain of runs through REST.
struct Rest {
    connection: Connection,
    heap: Value,
}

impl Rest {
    async fn run(&mut self) {
        let record = self.connection.post("/api/exec", &json!({ "code": CODE, "heap": self.heap, "wait_secs": 60 })).await;
        if record["status"] != "completed" {
            fail(&format!("a run ended as {record}"));
        }
        self.heap = record["heap"].clone();
    }
}

async fn stateless(artifacts: &Artifacts, effort: Effort, report: &mut Report) {
    let mut raw = RawLoop::start(artifacts).unwrap_or_else(|error| fail(&error.to_string()));
    let server = Server::start(&["--http-port", "0", "--stateless"]);
    let mut connection = server.connect().await;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..effort.choose(40, 300) + WARM_UP {
        let began = Instant::now();
        let answer = connection.post("/api/exec", &json!({ "code": "1 + 1" })).await;
        let mine = began.elapsed();
        if answer["output"] != "" {
            fail(&format!("a stateless run answered {answer}"));
        }
        let their = raw.round("stateless").unwrap_or_else(|error| fail(&error.to_string()));
        if round >= WARM_UP {
            ours.push(mine);
            theirs.push(their);
        }
    }
    report.add_pairs("stateless run over HTTP, against raw V8", &ours, &theirs, 4.0);
}

/// Executions per second of eight chains against one, in alternating windows.
async fn many_chains(effort: Effort, report: &mut Report) {
    let server = Server::start(&["--http-port", "0"]);
    let window = Duration::from_millis(effort.choose(700, 2000));
    let (mut one, mut eight) = (Vec::new(), Vec::new());
    for _ in 0..effort.choose(5, 7) {
        one.push(rate(&server, 1, window).await);
        eight.push(rate(&server, 8, window).await);
    }
    let ratios = Samples::new(eight.iter().zip(&one).map(|(eight, one)| eight / one).collect());
    let detail = format!("{:.0}/s against {:.0}/s", Samples::new(eight).median(), Samples::new(one).median());
    let spread = (ratios.quantile(0.1), ratios.quantile(0.9));
    report.add(Row::new("eight chains over REST, against one", " ×", Bar::AtLeast(1.7), ratios.median(), spread, detail));
}

async fn rate(server: &Server, chains: usize, window: Duration) -> f64 {
    let began = Instant::now();
    let mut working = Vec::new();
    for _ in 0..chains {
        let mut rest = Rest { connection: server.connect().await, heap: Value::Null };
        working.push(tokio::spawn(async move {
            let mut runs = 0;
            while began.elapsed() < window {
                rest.run().await;
                runs += 1;
            }
            runs
        }));
    }
    let mut runs = 0;
    for work in working {
        runs += work.await.unwrap_or_else(|error| fail(&error.to_string()));
    }
    f64::from(runs) / began.elapsed().as_secs_f64()
}

const PAGE_LINES: u64 = 10;
const PAGE_FAR: u64 = 100_000;

/// A page far into a large output against its first page.
async fn pages(effort: Effort, report: &mut Report) {
    let server = Server::start(&["--http-port", "0"]);
    let mut connection = server.connect().await;
    let lines = PAGE_LINES * PAGE_FAR;
    let code = format!(
        "for (let i = 0; i < {lines}; i += 1000) console.log(Array.from({{ length: 1000 }}, (_, j) => 'line ' + (i + j)).join('\\n'))"
    );
    let record = connection.post("/api/exec", &json!({ "code": code, "wait_secs": 120, "execution_timeout_secs": 120 })).await;
    let (Some(id), "completed") = (record["execution_id"].as_str(), record["status"].as_str().unwrap_or_default()) else {
        fail(&format!("the run for pages ended as {record}"));
    };
    let page = |number: u64| format!("/api/executions/{id}/output?line_offset={}&line_limit={PAGE_LINES}", (number - 1) * PAGE_LINES + 1);
    let (first, far) = (page(1), page(PAGE_FAR));
    let (far_times, first_times) = alternate(&mut connection, &far, &mut server.connect().await, &first, effort).await;
    report.add_pairs("page 100,000 of an output, against page 1", &far_times, &first_times, 1.2);
}

/// Sends the same request on two connections alternately.
async fn alternate(one: &mut Connection, path: &str, two: &mut Connection, other: &str, effort: Effort) -> (Vec<Duration>, Vec<Duration>) {
    let (mut times, mut other_times) = (Vec::new(), Vec::new());
    for round in 0..effort.choose(200, 2000) + WARM_UP {
        let (time, other_time) = (timed(one.get(path)).await, timed(two.get(other)).await);
        if round >= WARM_UP {
            times.push(time);
            other_times.push(other_time);
        }
    }
    (times, other_times)
}

async fn large_stores(effort: Effort, report: &mut Report) {
    let (large, small) = (Server::start_on(fill::folder(100_000)), Server::start_on(fill::folder(100)));
    let (mut on_large, mut on_small) = (large.connect().await, small.connect().await);
    let path = format!("/api/executions/{}", fill::known_execution());
    let (ours, theirs) = alternate(&mut on_large, &path, &mut on_small, &path, effort).await;
    report.add_pairs("get_execution among 100,000, against among 100", &ours, &theirs, 1.5);
    let query = json!({ "tags": { "rare": "yes" } });
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..effort.choose(100, 1000) + WARM_UP {
        let began = Instant::now();
        let found = on_large.post("/api/heaps/query", &query).await;
        let mine = began.elapsed();
        let began = Instant::now();
        let other = on_small.post("/api/heaps/query", &query).await;
        let their = began.elapsed();
        if found != other || found["results"].as_array().map(Vec::len) != Some(fill::RARE as usize) {
            fail(&format!("the tag query found {found} and {other}"));
        }
        if round >= WARM_UP {
            ours.push(mine);
            theirs.push(their);
        }
    }
    report.add_pairs("tag query among 100,000 heaps, against among 100", &ours, &theirs, 2.0);
}
