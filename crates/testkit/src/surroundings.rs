//! What must be the same around a run before and after it: processes, descriptors, files.

use crate::fixture::SPARES;
use crate::{Fixture, FixtureError, Process};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A worker that was killed is gone within a moment, and the next spare is there; nothing announces it to us, so we look until then.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(2);

/// The state of things between two runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    zygote: Process,
    own_descriptors: Vec<String>,
    zygote_descriptors: Vec<String>,
    files: Vec<PathBuf>,
}

impl Surroundings {
    /// Looks when everything that was going on has ended. `folder`: where temporary files of this process go.
    pub fn look(fixture: &Fixture, folder: &Path) -> Result<Self, FixtureError> {
        let zygote = fixture.zygote()?;
        patiently(|| worker_problems(zygote));
        Self::at_once(fixture, folder)
    }

    /// What is not as it was, once everything had time to go. Empty when all is well.
    pub fn changes(&self, fixture: &Fixture, folder: &Path) -> Vec<String> {
        patiently(|| match Self::at_once(fixture, folder) {
            Ok(now) => self.differences(&now),
            Err(error) => vec![error.to_string()],
        })
    }

    fn at_once(fixture: &Fixture, folder: &Path) -> Result<Self, FixtureError> {
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

/// Between runs there are the spare workers, alive, and no others.
fn worker_problems(zygote: Process) -> Vec<String> {
    let workers = zygote.children();
    let mut found: Vec<String> =
        workers.iter().filter(|worker| worker.is_zombie()).map(|worker| format!("worker {} is left as a zombie", worker.pid)).collect();
    if workers.len() != SPARES.count {
        found.push(format!("{} workers are there, expected are the {} spare ones", workers.len(), SPARES.count));
    }
    found
}

/// Looks again and again until there is nothing to complain of, or patience ends.
fn patiently(look: impl Fn() -> Vec<String>) -> Vec<String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = look();
        if found.is_empty() || Instant::now() > deadline {
            return found;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Descriptors without what tells one of a kind from another: a heap that was replaced by a newer one is no leak.
fn kinds(descriptors: Vec<String>) -> Vec<String> {
    let mut kinds: Vec<String> = descriptors.iter().map(|target| target.split(":[").next().unwrap_or(target).to_owned()).collect();
    kinds.sort();
    kinds
}
