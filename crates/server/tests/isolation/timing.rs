//! Requests for foreign objects take as long as requests for missing ones.
//!
//! Method: both are requested alternately, each pair in random order, and the times are compared by rank (Mann–Whitney U, two-sided, normal
//! approximation with tie correction). They count as different if the probability of ranks at least as uneven is below `ALARM`. A busy
//! machine may cause that once, so it has to happen again with three times as many samples and in the same direction. With a hundred kinds
//! of requests, a false alarm then occurs about once in two million runs.

use crate::caller::Caller;
use crate::fixture::torture;
use crate::owned_objects::{ObjectKind, OwnedObjects};
use crate::owners::TestServers;
use crate::rows::Ask;
use serde_json::json;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const ALARM: f64 = 1e-4;
/// Samples of each kind in the short form.
const SAMPLES: usize = 200;
const WARM_UP: usize = 20;
/// How often contexts are emptied until the runs of earlier requests have been recorded in them.
const CLEARINGS_MAX: usize = 300;

type Way = (ObjectKind, fn(&str) -> Ask);

/// The most exposed ways to name an object.
const WAYS: [Way; 13] = [
    (ObjectKind::Execution, |id| Ask::Operation("get_execution", json!({ "execution_id": id }))),
    (ObjectKind::Running, |id| Ask::Operation("get_execution", json!({ "execution_id": id }))),
    (ObjectKind::Heap, |key| Ask::Operation("run_js", json!({ "code": "1", "heap": key, "on_missing_heap": "fail", "wait_secs": 60 }))),
    (ObjectKind::Heap, |key| Ask::Operation("get_heap_tags", json!({ "heap": key }))),
    (ObjectKind::Heap, |key| Ask::Route { method: "GET", path: format!("/api/heaps/{key}/file"), headers: Vec::new(), body: None }),
    (ObjectKind::Heap, |key| Ask::Operation("delete_heap", json!({ "heap": key }))),
    (ObjectKind::Session, |id| Ask::Operation("show_session", json!({ "session": id }))),
    (ObjectKind::Session, |id| Ask::Operation("context_get", json!({ "session": id }))),
    (ObjectKind::EndedSession, |id| Ask::Operation("context_get", json!({ "session": id }))),
    (ObjectKind::EndedSession, |id| Ask::Operation("list_session_snapshots", json!({ "session": id }))),
    (ObjectKind::Session, |id| Ask::In(id.into(), "tools/list", json!({}))),
    (ObjectKind::Session, |id| Ask::Operation("run_js", json!({ "code": "1", "session": id }))),
    (ObjectKind::Logical, |id| Ask::Operation("run_js", json!({ "code": "1", "session": id }))),
];

/// Further ways, over one transport each: the rules are in the service, which all transports share. A torture run tests them over all.
const MORE_WAYS: [Way; 15] = [
    (ObjectKind::Execution, |id| Ask::Operation("replay_execution", json!({ "execution_id": id }))),
    (ObjectKind::Execution, |id| Ask::Operation("get_execution_output", json!({ "execution_id": id }))),
    (ObjectKind::Running, |id| Ask::Operation("cancel_execution", json!({ "execution_id": id }))),
    (ObjectKind::Execution, |id| Ask::Operation("delete_execution", json!({ "execution_id": id }))),
    (ObjectKind::Execution, |id| Ask::Operation("list_executions", json!({ "cursor": id, "limit": 10 }))),
    (ObjectKind::Running, |id| Ask::Method("resources/subscribe", json!({ "uri": format!("heapstead://executions/{id}") }))),
    (ObjectKind::Running, |id| Ask::Method("tasks/get", json!({ "taskId": id }))),
    (ObjectKind::Heap, |key| Ask::Operation("show_heap", json!({ "heap": key }))),
    (ObjectKind::Heap, |key| Ask::Operation("list_heaps", json!({ "cursor": key }))),
    (ObjectKind::Heap, |key| Ask::Operation("delete_heap_tags", json!({ "heap": key }))),
    (ObjectKind::Session, |id| Ask::Operation("session_fork", json!({ "session": id }))),
    (ObjectKind::Session, |id| Ask::Method("sessions/resume", json!({ "sessionId": id }))),
    (ObjectKind::Session, |id| Ask::Method("resources/subscribe", json!({ "uri": format!("heapstead://sessions/{id}/head") }))),
    (ObjectKind::Session, |id| Ask::Operation("end_session", json!({ "session": id }))),
    (ObjectKind::Logical, |id| Ask::Operation("end_session", json!({ "session": id, "forget": true }))),
];

#[tokio::test]
async fn foreign_objects_take_as_long_as_missing_ones() {
    let servers = TestServers::start();
    let anns = OwnedObjects::of(&servers, &servers.owner("acme/ann")).await;
    let mut random = Random::new();
    for stranger in [servers.owner("acme/bob"), servers.anonymous()] {
        for mut caller in Caller::all_of(&servers, &stranger).await {
            check(&mut caller, stranger.name, &anns, &WAYS, &mut random).await;
        }
    }
    for mut caller in Caller::local(&servers.folders).await {
        check(&mut caller, "local", &anns, &WAYS, &mut random).await;
    }
}

#[tokio::test]
async fn further_requests_for_foreign_objects_take_as_long_as_for_missing_ones() {
    let servers = TestServers::start();
    let anns = OwnedObjects::of(&servers, &servers.owner("acme/ann")).await;
    let (bob, mut random) = (servers.owner("acme/bob"), Random::new());
    for mut caller in Caller::all_of(&servers, &bob).await {
        let is_method = |way: &&Way| matches!((way.1)(""), Ask::Method(..));
        let ways: Vec<_> = match caller {
            Caller::Rest { .. } => MORE_WAYS.to_vec(),
            Caller::Legacy(_) => MORE_WAYS.iter().filter(is_method).copied().collect(),
            _ if torture() => MORE_WAYS.to_vec(),
            _ => continue,
        };
        check(&mut caller, bob.name, &anns, &ways, &mut random).await;
    }
}

/// Compares two kinds of requests, each of which `time` measures once.
pub async fn check_times(what: &str, samples: usize, mut time: impl AsyncFnMut(usize) -> Duration) {
    let mut random = Random::new();
    let mut measure = async |samples: usize| {
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..samples {
            let first = usize::from(random.bit());
            for which in [first, 1 - first] {
                times[which].push(time(which).await);
            }
        }
        Comparison::of(&times[0], &times[1])
    };
    let first = measure(samples).await;
    eprintln!("{what}: {first:?}");
    if first.probability < ALARM {
        let again = measure(3 * samples).await;
        let told_apart = again.probability < ALARM && (again.shift > 0.0) == (first.shift > 0.0);
        assert!(!told_apart, "{what}: {first:?}, then {again:?}");
    }
}

async fn check(caller: &mut Caller, who: &str, anns: &OwnedObjects, ways: &[Way], random: &mut Random) {
    let samples = if torture() { 10 * SAMPLES } else { SAMPLES };
    for &(kind, ask) in ways {
        let asks = [ask(anns.name(kind).expect("a name")), ask(&anns.missing(kind).expect("a name"))];
        let what = format!("{:?} by {who} over {}", asks[0], caller.way());
        clear_contexts(caller, &asks).await;
        let Some(first) = compare(caller, &asks, samples, random).await.filter(|first| first.probability < ALARM) else { continue };
        eprintln!("{what}: {first:?}, so once more");
        let again = compare(caller, &asks, 3 * samples, random).await.expect("the request was possible before");
        let told_apart = again.probability < ALARM && (again.shift > 0.0) == (first.shift > 0.0);
        assert!(!told_apart, "{what}: {first:?}, then {again:?}; seed {}", random.seed);
    }
}

/// Over REST both names may have become named sessions of the caller itself, in whose contexts its calls are recorded when they end, and runs
/// that nobody waited for end later. A context with more calls takes longer to read, so both are emptied until they stay so.
async fn clear_contexts(caller: &mut Caller, asks: &[Ask; 2]) {
    let mut lengths = Vec::new();
    for _ in 0..CLEARINGS_MAX {
        for ask in asks {
            let Ask::Operation("context_get", arguments) = ask else { return };
            caller.ask(&Ask::Operation("context_clear", arguments.clone())).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        lengths.clear();
        for ask in asks {
            lengths.push(caller.ask(ask).await.map(|answer| answer.len()));
        }
        if lengths[0] == lengths[1] {
            return;
        }
    }
    panic!("the answers to {asks:?} differ in length: {lengths:?}");
}

/// `None` if the request is not possible on this transport.
async fn compare(caller: &mut Caller, asks: &[Ask; 2], samples: usize, random: &mut Random) -> Option<Comparison> {
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..samples + WARM_UP {
        let first = usize::from(random.bit());
        for which in [first, 1 - first] {
            let began = Instant::now();
            caller.ask(&asks[which]).await?;
            if round >= WARM_UP {
                times[which].push(began.elapsed());
            }
        }
    }
    Some(Comparison::of(&times[0], &times[1]))
}

/// The difference between two sets of times.
#[derive(Debug)]
struct Comparison {
    /// Probability of ranks at least as uneven, if both come from one distribution.
    probability: f64,
    /// Standard deviations by which the ranks of the first are higher.
    shift: f64,
}

impl Comparison {
    fn of(one: &[Duration], two: &[Duration]) -> Self {
        let mut all: Vec<(Duration, bool)> = one.iter().map(|time| (*time, true)).chain(two.iter().map(|time| (*time, false))).collect();
        all.sort();
        let (n1, n2) = (one.len() as f64, two.len() as f64);
        let (mut ranks_of_one, mut ties, mut begin) = (0.0, 0.0, 0);
        while begin < all.len() {
            let end = begin + all[begin..].iter().take_while(|(time, _)| *time == all[begin].0).count();
            // Equal times share the mean of their ranks.
            let (rank, count) = ((begin + end + 1) as f64 / 2.0, (end - begin) as f64);
            ranks_of_one += rank * all[begin..end].iter().filter(|(_, is_one)| *is_one).count() as f64;
            ties += count.powi(3) - count;
            begin = end;
        }
        let (u, n) = (ranks_of_one - n1 * (n1 + 1.0) / 2.0, n1 + n2);
        let variance = n1 * n2 / 12.0 * (n + 1.0 - ties / (n * (n - 1.0)));
        let shift = (u - n1 * n2 / 2.0) / variance.sqrt().max(f64::MIN_POSITIVE);
        Self { probability: two_sided(shift), shift }
    }
}

/// The probability that a standard normal variable is at least this far from zero. Accurate to 1e-7 (Abramowitz and Stegun 7.1.26), far
/// below the alarm threshold.
fn two_sided(z: f64) -> f64 {
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let series = ((((1.061_405_429 * t - 1.453_152_027) * t + 1.421_413_741) * t - 0.284_496_736) * t + 0.254_829_592) * t;
    series * (-x * x).exp()
}

struct Random {
    seed: u64,
    state: u64,
}

impl Random {
    fn new() -> Self {
        let seed = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_nanos() as u64 | 1;
        Self { seed, state: seed }
    }

    fn bit(&mut self) -> bool {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state >> 32 & 1 == 1
    }
}

/// A test that detects no difference would prove nothing.
#[test]
fn the_statistic_detects_a_difference_of_a_tenth_and_accepts_equal_times() {
    let mut random = Random { seed: 1, state: 0x9e37_79b9_7f4a_7c15 };
    let mut noisy = |base: u64| Duration::from_micros(base + (0..8).map(|_| u64::from(random.bit()) * 50).sum::<u64>());
    let times = |base: u64, noisy: &mut dyn FnMut(u64) -> Duration| (0..SAMPLES).map(|_| noisy(base)).collect::<Vec<_>>();
    let (one, same, slower) = (times(500, &mut noisy), times(500, &mut noisy), times(550, &mut noisy));
    assert!(Comparison::of(&one, &same).probability > 1e-3);
    let apart = Comparison::of(&slower, &one);
    assert!(apart.probability < ALARM && apart.shift > 0.0, "{apart:?}");
    assert!((two_sided(1.96) - 0.05).abs() < 1e-3 && (two_sided(0.0) - 1.0).abs() < 1e-6);
}
