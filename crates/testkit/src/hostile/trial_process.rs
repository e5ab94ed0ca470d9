//! A trial process: has its own engine and executes one trial after another, so that all its descriptors and children are known.
//!
//! It takes the place of the server. The suite starts a few of them and sends requests as lines of JSON; each is answered with a report.

use super::case::{Case, Form};
use super::trial::{Memory, Problem, Trial, Way};
use crate::Fixture;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

/// Set in the environment of a trial process: the folder for its temporary files.
pub const TRIAL_PROCESS_VARIABLE: &str = "HEAPSTEAD_HOSTILE_LANE";

#[derive(Debug, Serialize, Deserialize)]
struct TrialRequest {
    folder: PathBuf,
    full: bool,
    way: Way,
}

/// The outcome of a trial.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Report {
    pub problems: Vec<Problem>,
    /// Information that is not a failure.
    pub notes: Vec<String>,
    /// Memory of the worker that used the largest share of its allowed memory.
    pub memory: Memory,
}

impl Report {
    fn broken(what: impl ToString) -> Self {
        Self { problems: vec![Problem::Other(what.to_string())], ..Self::default() }
    }
}

/// The suite's side of a trial process.
pub struct TrialProcess {
    child: Child,
    requests: ChildStdin,
    reports: BufReader<ChildStdout>,
    folder: PathBuf,
}

impl TrialProcess {
    pub fn start(number: usize) -> std::io::Result<Self> {
        let folder = std::env::temp_dir().join(format!("heapstead-hostile-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let mut child = Command::new(std::env::current_exe()?)
            .env(TRIAL_PROCESS_VARIABLE, &folder)
            .env("TMPDIR", &folder)
            .current_dir(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(requests), Some(reports)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        };
        Ok(Self { child, requests, reports: BufReader::new(reports), folder })
    }

    /// Executes a trial. None if the process died.
    pub fn run(&mut self, folder: &Path, form: Form, way: Way) -> Option<Report> {
        let request = TrialRequest { folder: folder.to_owned(), full: form == Form::Full, way };
        writeln!(self.requests, "{}", serde_json::to_string(&request).ok()?).ok()?;
        let mut line = String::new();
        self.reports.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }
}

impl Drop for TrialProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The process's own side: serves requests until there are no more.
pub fn serve(temporary: &Path) -> ExitCode {
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() else { return ExitCode::FAILURE };
    let fixture = runtime.block_on(Fixture::start());
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let report = match (serde_json::from_str::<TrialRequest>(&line), &fixture) {
            (Ok(request), Ok(fixture)) => runtime.block_on(run_trial(&request, fixture, temporary)),
            (_, Err(error)) => Report::broken(error),
            (Err(error), _) => Report::broken(error),
        };
        println!("{}", serde_json::to_string(&report).unwrap_or_default());
    }
    ExitCode::SUCCESS
}

async fn run_trial(request: &TrialRequest, fixture: &Fixture, temporary: &Path) -> Report {
    let form = if request.full { Form::Full } else { Form::Small };
    let case = match Case::load(&request.folder, form) {
        Ok(case) => case,
        Err(error) => return Report::broken(error),
    };
    let mut notes = Vec::new();
    loop {
        match Trial::run(fixture, &case, request.way, temporary).await {
            Ok((problems, _)) if notes.is_empty() && only_timing(&problems) => {
                notes.extend(problems.iter().map(|problem| format!("tried again: {}", problem.text())))
            }
            Ok((problems, memory)) => return Report { problems, notes, memory },
            Err(error) => return Report { notes, ..Report::broken(error) },
        }
    }
}

fn only_timing(problems: &[Problem]) -> bool {
    !problems.is_empty() && problems.iter().all(|problem| matches!(problem, Problem::Time(_)))
}
