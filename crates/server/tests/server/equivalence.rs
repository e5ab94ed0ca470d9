//! To code, a session that is live all the time, one that is evicted now and then, and one that is resumed before every turn are the same.
//!
//! Random programs run in all three. Status, result, error and output of every turn are compared, byte by byte. What comes from the clock or from
//! randomness differs between the sessions, but what a turn has read stays: later turns see the same values. `SEED=…` replays a failure.

mod programs;

use crate::fixture::{Folders, Random, Server};
use programs::{Programs, Turn};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The second session to become live evicts the first.
const ARGUMENTS: &[&str] = &["--session-durability", "journal", "--live-max-per-owner", "1", "--log", "error"];
const TURNS: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Live from the first turn to the last.
    Live,
    /// Anything happens between two turns: eviction, the death of workers, of the zygote or of the server, a stored heap.
    Interrupted,
    /// Not live at the start of any turn.
    Resumed,
}

/// What a caller sees of a turn.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    status: String,
    result: Option<String>,
    error: Option<String>,
    /// Lines of values that differ between sessions have only their name.
    output: String,
}

struct Player {
    mode: Mode,
    folders: Folders,
    server: Server,
    random: Random,
    interruptions: HashMap<&'static str, usize>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn live_and_resumed_sessions_are_the_same_to_code() {
    let programs = if crate::fixture::torture() { 1000 } else { 14 };
    let seed = Random::new().seed;
    let [mut live, mut interrupted, mut resumed] = [Mode::Live, Mode::Interrupted, Mode::Resumed].map(|mode| Player::new(mode, seed));
    let (begun, mut completed) = (Instant::now(), 0);
    for number in 0..programs {
        let seed = seed + number;
        let turns = Programs::new(seed).next(TURNS);
        let (one, two, three) = tokio::join!(live.play(&turns, seed), interrupted.play(&turns, seed), resumed.play(&turns, seed));
        completed += one.iter().filter(|seen| seen.status == "completed").count();
        for (index, turn) in turns.iter().enumerate() {
            let code = &turn.code;
            assert_eq!(one[index], two[index], "turn {index} in a session that was interrupted; SEED={seed}\n{code}");
            assert_eq!(one[index], three[index], "turn {index} in a session that was resumed; SEED={seed}\n{code}");
        }
    }
    let turns = programs as usize * TURNS;
    println!("{turns} turns in three sessions, {completed} completed, {:.1?}: {:?}", begun.elapsed(), interrupted.interruptions);
    assert!(2 * completed > turns, "only {completed} of {turns} turns completed; SEED={seed}");
}

impl Player {
    fn new(mode: Mode, seed: u64) -> Self {
        let folders = Folders::new();
        let server = Server::start_with(&folders, ARGUMENTS);
        Self { mode, folders, server, random: Random::seeded(seed), interruptions: HashMap::new() }
    }

    /// Runs the turns in a new session.
    async fn play(&mut self, turns: &[Turn], seed: u64) -> Vec<Seen> {
        self.random = Random::seeded(seed);
        let session = self.server.post("/api/sessions", json!({})).await.1["session_id"].as_str().expect("an id").to_owned();
        let (mut noise, mut all, mut last) = (HashMap::new(), Vec::new(), Value::Null);
        for turn in turns {
            match self.mode {
                Mode::Live => {}
                Mode::Interrupted => self.interrupt(&last).await,
                Mode::Resumed => self.evict().await,
            }
            let body = json!({ "code": turn.code, "session": session, "execution_timeout_secs": turn.timeout_secs });
            let record = self.server.run_with(body).await;
            let seen = self.seen(&record, &mut noise, seed).await;
            if seen.status == "completed" {
                last = record;
            }
            all.push(seen);
        }
        let (_, replayed) = self.server.post(&format!("/api/sessions/{session}/replay"), json!({})).await;
        assert_eq!(replayed["identical"], true, "{:?}; SEED={seed}: {replayed}", self.mode);
        self.server.delete(&format!("/api/sessions/{session}")).await;
        all
    }

    /// Splits the output of a turn into what is the same in every session, and values that stay the same in this one.
    async fn seen(&self, record: &Value, noise: &mut HashMap<String, Vec<Value>>, seed: u64) -> Seen {
        let id = record["execution_id"].as_str().expect("an id");
        let (_, page) = self.server.get(&format!("/api/executions/{id}/output?byte_limit=4194304")).await;
        let text = |field: &str| record[field].as_str().map(str::to_owned);
        let mut seen =
            Seen { status: text("status").expect("a status"), result: text("result"), error: text("error"), output: String::new() };
        for line in page["data"].as_str().unwrap_or_else(|| panic!("{page}")).split_inclusive('\n') {
            let Some((name, values)) = line.trim_start().strip_prefix('~').and_then(|line| line.split_once(' ')) else {
                seen.output += line;
                continue;
            };
            let values: Vec<Value> = serde_json::from_str(values).expect("a list");
            let before = noise.get(name).map_or(&[][..], Vec::as_slice);
            assert!(values.starts_with(before), "{name} was {before:?}, and is {values:?}; {:?}, SEED={seed}", self.mode);
            seen.output += &format!("~{name}: {} values\n", values.len());
            if seen.status == "completed" {
                noise.insert(name.to_owned(), values);
            }
        }
        seen
    }

    /// Makes another session live, for which there is no room beside it.
    async fn evict(&self) {
        let session = self.server.post("/api/sessions", json!({})).await.1["session_id"].clone();
        let record = self.server.run_with(json!({ "code": "1", "session": session })).await;
        assert_eq!(record["status"], "completed", "{record}");
        self.server.delete(&format!("/api/sessions/{}", session.as_str().expect("an id"))).await;
    }

    async fn interrupt(&mut self, last: &Value) {
        let name = ["nothing", "nothing", "evict", "workers", "zygote", "server", "heap"][self.random.below(7) as usize];
        *self.interruptions.entry(name).or_default() += 1;
        match name {
            "evict" => self.evict().await,
            "workers" => self.kill(Victim::Workers),
            "zygote" => self.kill(Victim::Zygote),
            "server" => {
                self.server.kill();
                self.server = Server::start_with(&self.folders, ARGUMENTS);
            }
            "heap" if last.is_object() => {
                let id = last["execution_id"].as_str().expect("an id");
                let (_, record) = self.server.get(&format!("/api/executions/{id}?materialize=true")).await;
                assert!(record["heap"].is_string(), "{record}");
                self.evict().await;
            }
            _ => {}
        }
    }

    /// Kills the zygotes of the server or their workers, and waits until all workers have ended: workers end with their zygote.
    fn kill(&self, victim: Victim) {
        let zygotes = children_of(self.server.pid() as i32);
        let workers: Vec<i32> = zygotes.iter().flat_map(|zygote| children_of(*zygote)).collect();
        for pid in if victim == Victim::Zygote { &zygotes } else { &workers } {
            let pid = rustix::process::Pid::from_raw(*pid).expect("a pid");
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        let begun = Instant::now();
        while workers.iter().any(|pid| is_alive(*pid)) {
            assert!(begun.elapsed() < Duration::from_secs(10), "{workers:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Victim {
    Zygote,
    Workers,
}

fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next()).is_some_and(|state| !"ZX".contains(state))
}

fn children_of(pid: i32) -> Vec<i32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}
