//! Detects leaks of a run: compares processes, descriptors and files before and after it.

use crate::fixture::SPARES;
use crate::{Fixture, FixtureError, Process};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long to poll for the exit of killed workers and the fork of the next spare. Neither is announced to this process.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(2);

/// Processes, descriptors and files between two runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceState {
    zygote: Process,
    own_descriptors: Vec<String>,
    zygote_descriptors: Vec<String>,
    files: Vec<PathBuf>,
}

impl ResourceState {
    /// Records the state once no run is in progress. `folder` is the folder for temporary files of this process.
    pub fn record(fixture: &Fixture, folder: &Path) -> Result<Self, FixtureError> {
        let zygote = fixture.zygote()?;
        retry_until_empty(|| worker_problems(zygote));
        Self::now(fixture, folder)
    }

    /// The differences that remain after a while. Empty if nothing has leaked.
    pub fn changes(&self, fixture: &Fixture, folder: &Path) -> Vec<String> {
        retry_until_empty(|| match Self::now(fixture, folder) {
            Ok(now) => self.differences(&now),
            Err(error) => vec![error.to_string()],
        })
    }

    fn now(fixture: &Fixture, folder: &Path) -> Result<Self, FixtureError> {
        let zygote = fixture.zygote()?;
        let this = Process::of(std::process::id());
        let mut files: Vec<PathBuf> = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        files.sort();
        Ok(Self {
            zygote,
            own_descriptors: this.map(|this| kinds(this.descriptors())).unwrap_or_default(),
            zygote_descriptors: kinds(zygote.descriptors()),
            files,
        })
    }

    fn differences(&self, now: &Self) -> Vec<String> {
        let mut found = worker_problems(now.zygote);
        if now.zygote != self.zygote {
            found.push(format!("the zygote is another process: it was {}, it is {}", self.zygote.pid, now.zygote.pid));
        }
        for (whose, before, after) in [
            ("this process", &self.own_descriptors, &now.own_descriptors),
            ("the zygote", &self.zygote_descriptors, &now.zygote_descriptors),
        ] {
            if before != after {
                found.push(format!("descriptors of {whose} changed: before {before:?}, after {after:?}"));
            }
        }
        found.extend(now.files.iter().filter(|file| !self.files.contains(file)).map(|file| format!("a file was left: {}", file.display())));
        found
    }
}

/// Between runs there must be exactly the spare workers, alive.
fn worker_problems(zygote: Process) -> Vec<String> {
    let workers = zygote.children();
    let mut found: Vec<String> =
        workers.iter().filter(|worker| worker.is_zombie()).map(|worker| format!("worker {} is left as a zombie", worker.pid)).collect();
    if workers.len() != SPARES.count {
        found.push(format!("there are {} workers, expected are the {} spare ones", workers.len(), SPARES.count));
    }
    found
}

/// Calls `look` until it finds nothing or the timeout has passed.
fn retry_until_empty(look: impl Fn() -> Vec<String>) -> Vec<String> {
    let deadline = Instant::now() + SETTLE_TIMEOUT;
    loop {
        let found = look();
        if found.is_empty() || Instant::now() > deadline {
            return found;
        }
        std::thread::sleep(PAUSE);
    }
}

/// The descriptors without their inode numbers, because replacing one heap by another is not a leak.
fn kinds(descriptors: Vec<String>) -> Vec<String> {
    let mut kinds: Vec<String> = descriptors.iter().map(|target| target.split(":[").next().unwrap_or(target).to_owned()).collect();
    kinds.sort();
    kinds
}
