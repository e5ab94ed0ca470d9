//! Benchmarks of live sessions: the cost of a durable turn against its parts, and what it does not depend on.

use super::connection::Connection;
use super::process::{self, Server};
use super::timed;
use crate::fail;
use crate::report::{Bar, Report, Row};
use crate::sample::{Effort, Samples, ratios};
use heapstead_engine::Artifacts;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const TURN: &str = "n += 1";
/// Of a bare write with a sync: what the journal holds of such a turn.
const SYNCED_BYTES: usize = 600;
/// Between turns, as agents make them: so that no turn waits for what the one before left to be done.
const PAUSE: Duration = Duration::from_millis(20);
const WARM_UP: usize = 5;

pub async fn measure(artifacts: &Artifacts, effort: Effort, report: &mut Report) {
    eprintln!("measuring live sessions …");
    let server = Server::start(&["--http-port", "0"]);
    durable_turn(artifacts, &server, effort, report).await;
    heap_sizes(&server, effort, report).await;
    many_turns(&server, effort, report).await;
    after_a_failed_turn(&server, effort, report).await;
    two_sessions(&server, effort, report).await;
    drop(server);
    idle_memory(report).await;
    resume(effort, report).await;
}

/// A session on a connection of its own.
struct Session {
    connection: Connection,
    id: Value,
}

impl Session {
    async fn open(server: &Server, code: &str) -> Self {
        let mut connection = server.connect().await;
        let id = connection.post("/api/sessions", &json!({})).await["session_id"].clone();
        let mut session = Self { connection, id };
        session.run(json!({ "code": code })).await;
        session
    }

    /// Runs a turn. Fails unless it completes.
    async fn run(&mut self, body: Value) {
        let record = self.try_run(body).await;
        if record["status"] != "completed" {
            fail(&format!("a turn ended as {record}"));
        }
    }

    async fn try_run(&mut self, mut body: Value) -> Value {
        (body["session"], body["wait_secs"]) = (self.id.clone(), 60.into());
        if body["durability"].is_null() {
            body["durability"] = "journal".into();
        }
        self.connection.post("/api/exec", &body).await
    }

    async fn turn(&mut self) {
        self.run(json!({ "code": TURN })).await;
    }

    /// A turn some time after the one before.
    async fn timed_turn(&mut self) -> Duration {
        tokio::time::sleep(PAUSE).await;
        timed(self.turn()).await
    }
}

/// Turns of two sessions, one after the other.
async fn pairs(ours: &mut Session, theirs: &mut Session, rounds: usize) -> (Vec<Duration>, Vec<Duration>) {
    let (mut our_times, mut their_times) = (Vec::new(), Vec::new());
    for round in 0..rounds + WARM_UP {
        let times = (ours.timed_turn().await, theirs.timed_turn().await);
        if round >= WARM_UP {
            our_times.push(times.0);
            their_times.push(times.1);
        }
    }
    (our_times, their_times)
}

async fn durable_turn(artifacts: &Artifacts, server: &Server, effort: Effort, report: &mut Report) {
    let mut session = Session::open(server, "var n = 0").await;
    let mut stored = Session::open(server, "var n = 0").await;
    let mut health = server.connect().await;
    let folder = process::folder();
    let mut file = File::create(folder.path().join("synced")).unwrap_or_else(|error| fail(&error.to_string()));
    let node = BareNode::start(artifacts);
    let mut plain = Connection::open(&node.address).await;
    let (mut ours, mut parts, mut snapshots, mut bare) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..effort.choose(60, 400) + WARM_UP {
        let turn = session.timed_turn().await;
        // After the same pause: what is measured right after something else finds caches and processors warm.
        tokio::time::sleep(PAUSE).await;
        let part = timed(health.get("/healthz")).await + synced_write(&mut file);
        tokio::time::sleep(PAUSE).await;
        let snapshot = timed(stored.run(json!({ "code": TURN, "durability": "snapshot" }))).await;
        tokio::time::sleep(PAUSE).await;
        let in_node = timed(async { drop(plain.ask("POST", "/", "", TURN.as_bytes()).await) }).await;
        if round >= WARM_UP {
            ours.push(turn);
            parts.push(part);
            snapshots.push(snapshot);
            bare.push(in_node);
        }
    }
    report.add_pairs("live turn, against /healthz and a bare sync", &ours, &parts, 3.0);
    report.add_pairs("live turn, against durability: snapshot", &ours, &snapshots, 0.15);
    report.add_pairs("live turn, against bare Node without durability", &ours, &bare, 3.0);
}

fn synced_write(file: &mut File) -> Duration {
    let began = Instant::now();
    let written = file.write_all(&[b'x'; SYNCED_BYTES]).and_then(|()| file.sync_data());
    written.unwrap_or_else(|error| fail(&error.to_string()));
    began.elapsed()
}

async fn heap_sizes(server: &Server, effort: Effort, report: &mut Report) {
    for (objects, what) in
        [(300_000, "live turn with 300,000 objects, against none"), (1_000_000, "live turn with 1,000,000 objects, against none")]
    {
        let code = format!("var n = 0; var list = Array.from({{ length: {objects} }}, (_, i) => ({{ i, name: `object ${{i}}` }})); n");
        let (mut large, mut empty) = (Session::open(server, "var n = 0").await, Session::open(server, "var n = 0").await);
        large.run(json!({ "code": code, "heap_memory_max_mb": 256 })).await;
        let rounds = effort.choose(20, 100);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..rounds + WARM_UP {
            tokio::time::sleep(PAUSE).await;
            let mine = timed(large.run(json!({ "code": TURN, "heap_memory_max_mb": 256 }))).await;
            tokio::time::sleep(PAUSE).await;
            let their = timed(empty.turn()).await;
            if round >= WARM_UP {
                ours.push(mine);
                theirs.push(their);
            }
        }
        report.add_pairs(what, &ours, &theirs, 1.2);
    }
}

async fn many_turns(server: &Server, effort: Effort, report: &mut Report) {
    let mut old = Session::open(server, "var n = 0").await;
    for _ in 0..1000 {
        old.turn().await;
    }
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..effort.choose(2, 10) {
        let mut fresh = Session::open(server, "var n = 0").await;
        let (old, fresh) = pairs(&mut old, &mut fresh, 15).await;
        ours.extend(old);
        theirs.extend(fresh);
    }
    report.add_pairs("live turn after 1,000 turns, against turns 1 to 20", &ours, &theirs, 1.05);
}

async fn after_a_failed_turn(server: &Server, effort: Effort, report: &mut Report) {
    let (mut failing, mut completing) = (Session::open(server, "var n = 0").await, Session::open(server, "var n = 0").await);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..effort.choose(30, 200) + WARM_UP {
        let failed = failing.try_run(json!({ "code": "n += 1; throw new Error('no')" })).await;
        if failed["status"] != "failed" {
            fail(&format!("a turn that throws ended as {failed}"));
        }
        let after_failed = failing.timed_turn().await;
        completing.turn().await;
        let after_completed = completing.timed_turn().await;
        if round >= WARM_UP {
            ours.push(after_failed);
            theirs.push(after_completed);
        }
    }
    report.add_pairs("live turn after a failed one, against a completed one", &ours, &theirs, 1.1);
}

/// Turns per second of two sessions against one, in alternating windows.
async fn two_sessions(server: &Server, effort: Effort, report: &mut Report) {
    let (mut one, mut two) = (Session::open(server, "var n = 0").await, Session::open(server, "var n = 0").await);
    let mut measured = Vec::new();
    for _ in 0..effort.choose(5, 21) {
        let alone = turns_in_a_window(&mut one).await;
        let (left, right) = tokio::join!(turns_in_a_window(&mut one), turns_in_a_window(&mut two));
        measured.push((left + right) / alone);
    }
    let samples = Samples::new(measured);
    let spread = (samples.quantile(0.1), samples.quantile(0.9));
    let detail = "turns per second, back to back".to_owned();
    report.add(Row::new("two live sessions, against one", " ×", Bar::AtLeast(1.85), samples.median(), spread, detail));
}

async fn turns_in_a_window(session: &mut Session) -> f64 {
    let (began, mut turns) = (Instant::now(), 0);
    while began.elapsed() < Duration::from_millis(500) {
        session.turn().await;
        turns += 1;
    }
    f64::from(turns) / began.elapsed().as_secs_f64()
}

/// What idle sessions take: pages that several processes share are divided between them.
async fn idle_memory(report: &mut Report) {
    const SESSIONS: usize = 40;
    let server = Server::start(&["--http-port", "0"]);
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        sessions.push(Session::open(&server, "var n = 0").await);
    }
    // Until the checkpoints are written.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let processes = live_processes(server.pid());
    let kib: u64 = processes.iter().copied().map(proportional_kib).sum();
    let each = kib as f64 / SESSIONS as f64 / 1024.0;
    let detail = format!("Pss of the {} processes of {SESSIONS} sessions", processes.len());
    report.add(Row::new("idle live session, memory", " MB", Bar::AtMost(6.0), each, (each, each), detail));
}

/// The processes of a server that lead a family or are in one: descendants of its zygotes that are not in their group.
fn live_processes(server: u32) -> Vec<i32> {
    let children = |pid: i32| -> Vec<i32> {
        let listed = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        listed.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    };
    let group = |pid: i32| rustix::process::Pid::from_raw(pid).and_then(|pid| rustix::process::getpgid(Some(pid)).ok());
    let server = i32::try_from(server).unwrap_or_default();
    let threads = std::fs::read_dir(format!("/proc/{server}/task")).into_iter().flatten().flatten();
    let zygotes: Vec<i32> = threads
        .flat_map(|thread| {
            let listed = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            listed.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>()
        })
        .collect();
    zygotes.iter().flat_map(|zygote| children(*zygote).into_iter().filter(|worker| group(*worker) != group(*zygote))).collect()
}

fn proportional_kib(pid: i32) -> u64 {
    let map = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let value = |line: &str| line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default();
    map.lines().filter(|line| line.starts_with("Pss:")).map(value).sum()
}

/// The run time of all code so far, as the server has measured it.
async fn run_time(connection: &mut Connection) -> Duration {
    let page = connection.ask("GET", "/metrics", "", b"").await.body;
    let page = String::from_utf8_lossy(&page);
    let sum = page.lines().find_map(|line| line.strip_prefix("heapstead_execution_run_ms_sum ")?.parse::<f64>().ok());
    Duration::from_secs_f64(sum.unwrap_or_else(|| fail("no run time in the metrics")) / 1000.0)
}

/// The first turn after a crash, in a session with ten turns since its last checkpoint, less what the code of these turns took, against one
/// without.
async fn resume(effort: Effort, report: &mut Report) {
    let mut server = Server::start(&["--http-port", "0"]);
    let (mut ours, mut theirs, mut turns) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..effort.choose(5, 25) {
        let (mut tailed, mut stored) = (Session::open(&server, "var n = 0").await, Session::open(&server, "var n = 0").await);
        for session in [&mut tailed, &mut stored] {
            session.run(json!({ "code": TURN, "durability": "snapshot" })).await;
        }
        let before = run_time(&mut tailed.connection).await;
        for _ in 0..10 {
            tailed.turn().await;
        }
        let of_turns = run_time(&mut tailed.connection).await - before;
        server = server.killed_and_started_again();
        // The first run of a server waits for its first worker.
        Session::open(&server, "var n = 0").await;
        for session in [&mut tailed, &mut stored] {
            session.connection = server.connect().await;
        }
        theirs.push(timed(stored.turn()).await);
        ours.push(timed(tailed.turn()).await.saturating_sub(of_turns));
        turns.push(of_turns);
    }
    let (ratios, median) = (ratios(&ours, &theirs), |times| Samples::of(times).median());
    let detail = format!(
        "{:.1} ms, and {:.1} ms of the turns' own, against {:.1} ms, {} pairs",
        median(&ours),
        median(&turns),
        median(&theirs),
        ours.len()
    );
    let spread = (ratios.quantile(0.1), ratios.quantile(0.9));
    report.add(Row::new("resume with ten turns of tail, against a restore", " ×", Bar::AtMost(1.5), ratios.median(), spread, detail));
}

/// The V8 host as plain Node: evaluates what is posted.
struct BareNode {
    child: Child,
    address: String,
}

const NODE_SERVER: &str =
    "globalThis.n = 0; const { createServer } = require('node:http'); const server = createServer((request, answer) => {
  let code = ''; request.on('data', (part) => code += part); request.on('end', () => answer.end(String((0, eval)(code))));
}); server.listen(0, '127.0.0.1', () => console.log(server.address().port));";

impl BareNode {
    fn start(artifacts: &Artifacts) -> Self {
        let started = Command::new(&artifacts.host).args(["-e", NODE_SERVER]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = started.unwrap_or_else(|error| fail(&error.to_string()));
        let mut line = String::new();
        let output = child.stdout.take().unwrap_or_else(|| fail("no output of Node"));
        BufReader::new(output).read_line(&mut line).unwrap_or_else(|error| fail(&error.to_string()));
        Self { child, address: format!("127.0.0.1:{}", line.trim()) }
    }
}

impl Drop for BareNode {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
