//! Many live sessions: what they take, and that nothing grows while sessions are evicted and resumed in rotation.

use crate::fixture::{Folders, Server, torture};
use crate::live::{open, result};
use heapstead_testkit::Process;
use std::time::{Duration, Instant};

/// Memory of an idle session, on average: the proportional set size of its processes.
const MB_EACH: u64 = 6;

/// The zygotes and workers of a server.
struct Children(Vec<Process>);

impl Children {
    fn of(server: &Server) -> Self {
        let zygotes = Process::of(server.pid()).expect("the server").children();
        Self(zygotes.into_iter().flat_map(|zygote| zygote.children().into_iter().chain([zygote])).collect())
    }

    fn descriptors(&self) -> usize {
        self.0.iter().map(|process| process.descriptors().len()).sum()
    }

    /// Of all but the zygotes, which have children.
    fn workers_pss_kib(&self) -> u64 {
        self.0.iter().filter(|process| process.children().is_empty()).map(pss_kib).sum()
    }
}

fn pss_kib(process: &Process) -> u64 {
    let map = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", process.pid)).unwrap_or_default();
    let value = map.lines().find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix(" kB")?.parse().ok());
    value.unwrap_or_default()
}

/// All sessions are live at the same time, within the stated memory, and each still has its own state.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_sessions_are_live_at_once() {
    let count = if torture() { 1000 } else { 60 };
    let server = Server::start_with(&Folders::new(), &["--live-max-per-owner", "2000", "--log", "error"]);
    let mut sessions = Vec::new();
    for n in 0..count {
        let session = open(&server).await;
        result(&server, &session, &format!("let mine = {n}; mine")).await;
        sessions.push(session);
    }
    stored(&server).await;
    let live = server.get("/api/health").await.1["live_sessions"].clone();
    assert_eq!(live["sessions"], count, "{live}");
    let children = Children::of(&server);
    let each_kib = children.workers_pss_kib() / count;
    eprintln!("{count} live sessions: {} processes, {each_kib} KiB each, server {} MB", children.0.len(), server.memory_mb());
    assert!(each_kib <= MB_EACH << 10, "{each_kib} KiB each");
    for (n, session) in sessions.iter().enumerate() {
        assert_eq!(result(&server, session, "mine").await, n.to_string());
    }
    let metrics = server.client.get(format!("{}/metrics", server.url)).send().await.expect("an answer").text().await.expect("a text");
    assert!(metrics.lines().any(|line| line == "heapstead_live_resumes_total 0"), "none of them was resumed: {metrics}");
}

/// More sessions than can be live take turns, so that each turn resumes one and evicts another. Memory, descriptors and processes stay flat.
///
/// Found a session with a wrong heap: a checkpoint waited while its session was evicted and resumed, and was then recorded for the turn that had
/// the same run number in the next worker.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_grows_while_sessions_are_evicted_and_resumed() {
    let (count, at_once, time) = if torture() { (10_000, "200", Duration::from_secs(600)) } else { (60, "10", Duration::from_secs(12)) };
    let server = Server::start_with(&Folders::new(), &["--live-max-per-owner", at_once, "--log", "error"]);
    let mut sessions = Vec::new();
    for _ in 0..count {
        let session = open(&server).await;
        result(&server, &session, "let n = 0; n").await;
        sessions.push((session, 0_u64));
    }
    let (begun, mut samples, mut next) = (Instant::now(), Vec::new(), 0);
    while begun.elapsed() < time {
        // Not a divisor of the number of sessions, so that the order varies.
        next = (next + 7) % count;
        let (session, turns) = &mut sessions[next];
        *turns += 1;
        assert_eq!(result(&server, session, "n += 1").await, turns.to_string());
        let due = time.mul_f64((samples.len() + 1) as f64 / 21.0);
        if begun.elapsed() >= due && samples.len() < 20 {
            let children = Children::of(&server);
            let descriptors = children.descriptors() + Process::of(server.pid()).expect("the server").descriptors().len();
            samples.push((server.memory_mb(), descriptors, children.0.len()));
        }
    }
    let turns: u64 = sessions.iter().map(|(_, turns)| turns).sum();
    eprintln!("{turns} turns of {count} sessions; memory in MB, descriptors, processes: {samples:?}");
    let most = |samples: &[(u64, usize, usize)]| {
        let of = |member: fn(&(u64, usize, usize)) -> u64| samples.iter().map(member).max().unwrap_or_default();
        (of(|sample| sample.0), of(|sample| sample.1 as u64), of(|sample| sample.2 as u64))
    };
    assert!(samples.len() >= 10, "{samples:?}");
    let ((memory, descriptors, processes), (later_memory, later_descriptors, later_processes)) =
        (most(&samples[..samples.len() / 2]), most(&samples[samples.len() / 2..]));
    assert!(later_memory <= memory + memory / 4 + 16, "{samples:?}");
    assert!(later_descriptors <= descriptors + descriptors / 4 + 16, "{samples:?}");
    assert!(later_processes <= processes + processes / 4 + 8, "{samples:?}");
}

/// Waits until every live session has its checkpoint, so that no process writes one.
async fn stored(server: &Server) {
    let begun = Instant::now();
    loop {
        let metrics = server.client.get(format!("{}/metrics", server.url)).send().await.expect("an answer").text().await.expect("a text");
        if metrics.lines().any(|line| line == "heapstead_live_unstored_turns 0") {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(300), "checkpoints are not written");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
