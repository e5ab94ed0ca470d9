//! One trial: runs a case in one way, and checks its outcome and side effects.

use super::case::Case;
use super::expected::{Expected, summary};
use crate::fixture::SETUP;
use crate::{Fixture, FixtureError, ObservedRun, ResourceState, Run, private_bytes_max};
use heapstead_engine::{HeapImage, Kind, LiveWorker};
use heapstead_types::{HeapKey, Limits, Status};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

/// How long after its time limit a run may end.
const LATE: Duration = Duration::from_millis(250);
/// Maximum duration of a canary run, on a machine that is busy with other tests.
const CANARY_WITHIN: Duration = Duration::from_secs(1);
/// Sent with every run. No heap may contain its value afterwards.
const HEADER: &str = "x-mcp-secret";
/// Shows the state of a live session: its variables, and everything that is global.
const STATE: &str = "JSON.stringify([canary, log, Reflect.ownKeys(globalThis).map(String)])";
const HEADER_VALUE: &str = "the-headers-of-a-run-are-of-that-run-alone";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// On a fresh heap.
    Fresh,
    /// In a session that already has a head.
    Session,
    /// On the heap that the first run saved.
    Second,
    /// As a turn of a session whose heap stays in memory.
    Live,
    /// Without any heap.
    Stateless,
    /// Repeatedly on its own heap until it fails.
    Chain,
    /// Many times on fresh heaps.
    Many,
}

/// Why a trial failed. A trial that was only too slow is repeated once, because the machine may have been busy.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Problem {
    Time(String),
    Other(String),
}

impl Problem {
    pub fn text(&self) -> &str {
        match self {
            Self::Time(text) | Self::Other(text) => text,
        }
    }
}

/// How much memory a worker used, and how much it may use.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Memory {
    pub peak_bytes: u64,
    pub bytes_max: u64,
}

impl Memory {
    pub fn share(&self) -> f64 {
        self.peak_bytes as f64 / self.bytes_max.max(1) as f64
    }
}

pub struct Trial<'a> {
    fixture: &'a Fixture,
    case: &'a Case,
    limits: Limits,
    zygote_bytes: u64,
    problems: Vec<Problem>,
    memory: Memory,
}

impl<'a> Trial<'a> {
    /// Runs `case` in one way. Returns the problems found, and the memory used. `folder` is checked for leftover temporary files.
    pub async fn run(fixture: &'a Fixture, case: &'a Case, way: Way, folder: &Path) -> Result<(Vec<Problem>, Memory), FixtureError> {
        let before = ResourceState::record(fixture, folder)?;
        let zygote_bytes = fixture.zygote()?.anonymous_bytes().unwrap_or(0);
        let mut trial = Self { fixture, case, limits: case.limits(), zygote_bytes, problems: Vec::new(), memory: Memory::default() };
        match way {
            Way::Fresh => trial.fresh().await?,
            Way::Session => trial.session().await?,
            Way::Second => trial.second().await?,
            Way::Live => trial.live().await?,
            Way::Stateless => trial.stateless().await?,
            Way::Chain => trial.chain().await?,
            Way::Many => trial.many().await?,
        }
        trial.canary().await?;
        trial.problems.extend(before.changes(fixture, folder).into_iter().map(Problem::Other));
        Ok((trial.problems, trial.memory))
    }

    async fn fresh(&mut self) -> Result<(), FixtureError> {
        let ends = &self.case.file.ends;
        let seen = self.checked("the run", &self.case.code, Kind::Stateful(None), ends).await?;
        self.after(seen.heap).await
    }

    async fn session(&mut self) -> Result<(), FixtureError> {
        let mut head = self.fixture.known_heap();
        let ends = &self.case.file.ends;
        let seen = self.checked("the run in the session", &self.case.code, Kind::Stateful(Some(head.clone())), ends).await?;
        // Only a completed run changes the head.
        if let Some(heap) = seen.heap {
            head = heap;
            self.after(Some(head.clone())).await?;
        }
        let kept = Expected::completed("42");
        self.checked("the session afterwards", "canary + log.length", Kind::Stateful(Some(head)), &kept).await.map(drop)
    }

    async fn second(&mut self) -> Result<(), FixtureError> {
        let (case, file) = (self.case, &self.case.file);
        let saves = Expected::completed("\"saved\"");
        let (first, expected, second) = match &case.prefix {
            Some(prefix) => (prefix.clone(), &saves, case.code.clone()),
            None if file.ends.may_complete() => (case.code.clone(), &file.ends, case.code.clone()),
            None => (case.storing_code(), &saves, case.stored_code()),
        };
        let seen = self.checked("the first run", &first, Kind::Stateful(None), expected).await?;
        let Some(heap) = seen.heap else { return Ok(()) };
        let ends = file.second.as_ref().unwrap_or(&file.ends);
        let seen = self.checked("the second run", &second, Kind::Stateful(Some(heap)), ends).await?;
        self.after(seen.heap).await
    }

    /// A turn that does not complete leaves the state as it was, byte by byte.
    async fn live(&mut self) -> Result<(), FixtureError> {
        let live = self.fixture.open_live(self.limits.heap_mb).await?;
        self.turn("the first turn", SETUP, &live, &Expected::completed("undefined")).await?;
        let before = self.state(&live).await?;
        let completed = self.case_turn(&live).await?;
        if completed {
            self.turn_after(&live).await?;
        } else {
            let after = self.state(&live).await?;
            if after != before || after.0.is_none() {
                self.wrong(format!("the state of the live session was {before:?}, and is {after:?}"));
            }
        }
        self.turn("the session afterwards", "canary + log.length", &live, &Expected::completed("42")).await
    }

    /// Runs a turn, and commits it.
    async fn turn(&mut self, what: &str, code: &str, live: &LiveWorker, expected: &Expected) -> Result<(), FixtureError> {
        match self.checked(what, code, Kind::Live(live.clone()), expected).await?.turn {
            Some(turn) => turn.commit().await.map_err(FixtureError::Live),
            None => Ok(()),
        }
    }

    /// Runs the case as a turn. Commits it if its heap can be saved, so that it ends as it does elsewhere, and returns whether it is committed.
    async fn case_turn(&mut self, live: &LiveWorker) -> Result<bool, FixtureError> {
        let mut seen = self.watched("the turn", &self.case.code, Kind::Live(live.clone())).await?;
        let mut turn = seen.turn.take();
        if let Some(completed) = &mut turn {
            match completed.snapshot().await {
                Ok(heap) => seen.heap = Some(heap),
                Err(failure) => {
                    seen = ObservedRun { status: Status::Failed, result: None, failure: Some(failure), ..seen };
                    turn = None;
                }
            }
            self.check_reveals_nothing("the turn", &seen);
        }
        self.compare("the turn", &self.case.file.ends, &seen);
        match turn {
            Some(turn) => turn.commit().await.map_err(FixtureError::Live).map(|()| true),
            None => Ok(false),
        }
    }

    /// What code sees of a live session, and the key of its heap if the case shall not change it. Snapshots have the lowest priority and wait
    /// for other trials, so few are compared in the small form. The run that looks is not committed.
    async fn state(&mut self, live: &LiveWorker) -> Result<(Option<String>, Option<HeapKey>), FixtureError> {
        let seen = self.watched("the state", STATE, Kind::Live(live.clone())).await?.result;
        if self.case.file.ends.may_complete() || !self.case.is_sampled() {
            return Ok((seen, None));
        }
        let heap = live.snapshot().await.map_err(FixtureError::Live)?;
        Ok((seen, heap.map(|(heap, _)| heap.key())))
    }

    async fn turn_after(&mut self, live: &LiveWorker) -> Result<(), FixtureError> {
        match &self.case.file.after {
            // A turn with another cap needs another worker.
            Some(after) if after.heap_mb.is_some() => {
                let heap = live.snapshot().await.map_err(FixtureError::Live)?;
                self.after(heap.map(|(heap, _)| heap)).await
            }
            Some(after) => self.checked("the code afterwards", &after.code, Kind::Live(live.clone()), &after.ends).await.map(drop),
            None => Ok(()),
        }
    }

    async fn stateless(&mut self) -> Result<(), FixtureError> {
        let ends = &self.case.file.ends;
        self.checked("the stateless run", &self.case.code, Kind::Stateless, ends).await.map(drop)
    }

    async fn chain(&mut self) -> Result<(), FixtureError> {
        let Some(chain) = &self.case.file.chain else { return Ok(()) };
        let mut heap = None;
        for completed in 0..chain.runs_max {
            let seen = self.watched("a run of the chain", &self.case.code, Kind::Stateful(heap.clone())).await?;
            if seen.status == Status::Completed {
                heap = seen.heap;
                continue;
            }
            self.compare("the run that ends the chain", &chain.ends, &seen);
            if completed < chain.completes_min {
                self.wrong(format!(
                    "run {} of the chain ended it, {} should complete: {}",
                    completed + 1,
                    chain.completes_min,
                    summary(&seen)
                ));
            }
            return self.after(heap).await;
        }
        self.wrong(format!("{} runs completed, and none was refused", chain.runs_max));
        Ok(())
    }

    /// Checks that all runs have different results.
    async fn many(&mut self) -> Result<(), FixtureError> {
        let count = self.case.many_runs();
        let mut results = HashSet::new();
        for seen in self.fixture.run_many(&self.job(&self.case.code, Kind::Stateful(None)), count).await? {
            self.compare("one of many runs", &self.case.file.ends, &seen);
            results.extend(seen.result);
        }
        if results.len() != count {
            self.wrong(format!("{count} runs had only {} different results", results.len()));
        }
        Ok(())
    }

    async fn after(&mut self, heap: Option<HeapImage>) -> Result<(), FixtureError> {
        let (Some(after), Some(_)) = (&self.case.file.after, &heap) else { return Ok(()) };
        let limits = self.limits;
        self.limits.heap_mb = after.heap_mb.unwrap_or(limits.heap_mb);
        let seen = self.checked("the code afterwards", &after.code, Kind::Stateful(heap), &after.ends).await;
        self.limits = limits;
        seen.map(drop)
    }

    async fn canary(&mut self) -> Result<(), FixtureError> {
        let job = Run::new("canary + 1", Kind::Stateful(Some(self.fixture.known_heap())), Limits::default());
        let seen = self.fixture.run(job).await?;
        if seen.result.as_deref() != Some("42") {
            self.wrong(format!("the canary: expected 42, got {}", summary(&seen)));
        }
        self.in_time("the canary", seen.wall, CANARY_WITHIN);
        Ok(())
    }

    async fn checked(&mut self, what: &str, code: &str, kind: Kind, expected: &Expected) -> Result<ObservedRun, FixtureError> {
        let seen = self.watched(what, code, kind).await?;
        self.compare(what, expected, &seen);
        Ok(seen)
    }

    /// Executes a run and checks what must hold for every run: time, memory, and that nothing of the machine is revealed.
    async fn watched(&mut self, what: &str, code: &str, kind: Kind) -> Result<ObservedRun, FixtureError> {
        let snapshot_bytes = match &kind {
            Kind::Stateful(Some(heap)) => heap.length(),
            _ => 0,
        };
        let seen = self.fixture.run(self.job(code, kind)).await?;
        self.in_time(what, seen.wall, Duration::from_secs(self.limits.timeout_secs.into()) + LATE);
        let bytes_max = private_bytes_max(self.limits.heap_mb, snapshot_bytes, self.zygote_bytes);
        let memory = Memory { peak_bytes: seen.peak_bytes, bytes_max };
        if memory.share() > 1.0 {
            self.wrong(format!("{what}: its worker used {} MB, at most {} are allowed", seen.peak_bytes >> 20, bytes_max >> 20));
        }
        if memory.share() > self.memory.share() {
            self.memory = memory;
        }
        self.check_reveals_nothing(what, &seen);
        Ok(seen)
    }

    fn job(&self, code: &str, kind: Kind) -> Run {
        let headers = vec![(HEADER.to_owned(), HEADER_VALUE.to_owned())];
        Run { headers, ..Run::new(code, kind, self.limits) }
    }

    fn compare(&mut self, what: &str, expected: &Expected, seen: &ObservedRun) {
        self.problems.extend(expected.compare(seen).into_iter().map(|wrong| Problem::Other(format!("{what}: {wrong}"))));
        if let Some(within_ms) = expected.within_ms {
            self.in_time(what, seen.wall, Duration::from_millis(within_ms));
        }
    }

    /// Checks that no path of the machine and no header of the run is revealed.
    fn check_reveals_nothing(&mut self, what: &str, seen: &ObservedRun) {
        let error = seen.failure.as_ref().map(ToString::to_string).unwrap_or_default();
        let texts = [seen.result.as_deref().unwrap_or_default(), &error, &String::from_utf8_lossy(&seen.output)];
        for secret in machine_paths() {
            if texts.iter().any(|text| text.contains(&secret)) {
                self.wrong(format!("{what}: {secret:?} of the machine is revealed"));
            }
        }
        if error.contains("(heapstead:") || error.contains("at heapstead:") {
            self.wrong(format!("{what}: the error shows frames of the base heap: {error}"));
        }
        let payload = seen.heap.as_ref().and_then(|heap| heap.payload().ok()).unwrap_or_default();
        if payload.windows(HEADER_VALUE.len()).any(|window| window == HEADER_VALUE.as_bytes()) {
            self.wrong(format!("{what}: the value of a header is in the heap it saved"));
        }
    }

    fn in_time(&mut self, what: &str, took: Duration, max: Duration) {
        if took > max {
            self.problems.push(Problem::Time(format!("{what}: took {took:?}, at most {max:?} are allowed")));
        }
    }

    fn wrong(&mut self, text: String) {
        self.problems.push(Problem::Other(text));
    }
}

/// Paths of the machine that must not appear in results, errors or output.
fn machine_paths() -> Vec<String> {
    let engine = heapstead_engine::Artifacts::find().ok().and_then(|parts| parts.host.parent().map(Path::to_owned));
    let paths = [std::env::current_exe().ok(), engine, std::env::current_dir().ok()];
    let paths = paths.iter().flatten().map(|path| path.display().to_string());
    paths.chain(["heapstead-v8-host".to_owned(), "libheapstead".to_owned()]).collect()
}
