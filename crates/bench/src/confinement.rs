//! What the newest layers of confinement cost a stateless run: namespaces, filters of arguments and control of speculation, against the same
//! engine with the layers before them, which only the test library has (`probes/src/earlier_layers.rs`).
//!
//! CPU time of server, zygote and workers, because the wall time of a run on a busy machine varies by more than what is measured.

use crate::engine::run;
use crate::fail;
use crate::report::Report;
use crate::sample::Effort;
use heapstead_engine::{Artifacts, Config, Engine, Kind};
use std::path::Path;
use std::time::Duration;

const LIBRARY: &str = "libheapstead_probes.so";
const PREFIX: &str = "earlier-layers:";
/// The kernel reports the CPU time of the zygote in hundredths of a second. This many runs take half a second.
const RUNS: usize = 100;

struct Side {
    engine: Engine,
    zygote: u32,
}

pub async fn measure(artifacts: &Artifacts, effort: Effort, report: &mut Report) {
    let mut earlier = artifacts.clone();
    earlier.worker.set_file_name(LIBRARY);
    earlier.base_heap = format!("{PREFIX}{}", artifacts.base_heap.display()).into();
    let sides = [Side::start(artifacts.clone()).await, Side::start(earlier).await];
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    // The first round warms up. The sides take turns at going first.
    for round in 0..=effort.choose(11, 31) {
        let [all, earlier] = if round % 2 == 0 {
            let all = sides[0].round().await;
            [all, sides[1].round().await]
        } else {
            let earlier = sides[1].round().await;
            [sides[0].round().await, earlier]
        };
        if round > 0 {
            ours.push(all / RUNS as u32);
            theirs.push(earlier / RUNS as u32);
        }
    }
    report.add_pairs("CPU time of a stateless run, against earlier layers", &ours, &theirs, 1.05);
}

impl Side {
    async fn start(artifacts: Artifacts) -> Self {
        let before = children();
        let engine = Engine::start(Config::new(artifacts)).await.unwrap_or_else(|error| fail(&error.to_string()));
        match children().into_iter().filter(|child| !before.contains(child)).collect::<Vec<_>>()[..] {
            [zygote] => Self { engine, zygote },
            ref others => fail(&format!("one zygote was started, and these processes appeared: {others:?}")),
        }
    }

    /// CPU time of some runs.
    async fn round(&self) -> Duration {
        let before = self.cpu_time();
        for _ in 0..RUNS {
            run(&self.engine, "1 + 1", Kind::Stateless).await;
        }
        self.cpu_time() - before
    }

    /// CPU time of this process, the zygote and all workers that have ended.
    fn cpu_time(&self) -> Duration {
        let own = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let stat = stat(self.zygote).unwrap_or_else(|| fail("the zygote has died"));
        // User and system time of the zygote, then of its children.
        let ticks: u64 = (11..15).filter_map(|field| stat.get(field)?.parse::<u64>().ok()).sum();
        let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
        Duration::new(own.tv_sec as u64, own.tv_nsec as u32) + Duration::from_micros(ticks * 1_000_000 / ticks_per_second)
    }
}

/// The processes that this one has started.
fn children() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap_or_else(|error| fail(&format!("/proc: {error}")));
    let all = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let own = std::process::id().to_string();
    all.filter(|pid| stat(*pid).is_some_and(|stat| stat.get(1) == Some(&own))).collect()
}

/// `/proc/<pid>/stat` after the name, which may contain any character: state, parent, …
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    Some(text.rsplit_once(')')?.1.split_ascii_whitespace().map(str::to_owned).collect())
}
