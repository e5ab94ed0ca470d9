//! A lane: a process with an engine of its own that makes one trial after another, so that every descriptor and child it has is explained.
//!
//! It stands where the server will. The suite starts a few of them and sends orders as lines of JSON; a report comes back for each.

use super::case::{Case, Form};
use super::trial::{Memory, Problem, Trial, Way};
use crate::Fixture;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

/// Set in the environment of a lane: the folder for its temporary files.
pub const LANE_VARIABLE: &str = "HEAPSTEAD_HOSTILE_LANE";

#[derive(Debug, Serialize, Deserialize)]
struct Order {
    folder: PathBuf,
    full: bool,
    way: Way,
}

/// What came of a trial.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Report {
    pub problems: Vec<Problem>,
    /// Worth knowing, and no failure.
    pub notes: Vec<String>,
    /// Of all its workers the one that came nearest to what it may use.
    pub memory: Memory,
}

impl Report {
    fn broken(what: impl ToString) -> Self {
        Self { problems: vec![Problem::Other(what.to_string())], ..Self::default() }
    }
}

/// A lane as the suite sees it.
pub struct Lane {
    child: Child,
    orders: ChildStdin,
    reports: BufReader<ChildStdout>,
    folder: PathBuf,
}

impl Lane {
    pub fn start(number: usize) -> std::io::Result<Self> {
        let folder = std::env::temp_dir().join(format!("heapstead-hostile-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let mut child = Command::new(std::env::current_exe()?)
            .env(LANE_VARIABLE, &folder)
            .env("TMPDIR", &folder)
            .current_dir(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(orders), Some(reports)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        };
        Ok(Self { child, orders, reports: BufReader::new(reports), folder })
    }

    /// Has a trial made. None when the lane died over it.
    pub fn order(&mut self, folder: &Path, form: Form, way: Way) -> Option<Report> {
        let order = Order { folder: folder.to_owned(), full: form == Form::Full, way };
        writeln!(self.orders, "{}", serde_json::to_string(&order).ok()?).ok()?;
        let mut line = String::new();
        self.reports.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The lane's own side: trials until there are no more orders.
pub fn serve(temporary: &Path) -> ExitCode {
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() else { return ExitCode::FAILURE };
    let fixture = runtime.block_on(Fixture::start());
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let report = match (serde_json::from_str::<Order>(&line), &fixture) {
            (Ok(order), Ok(fixture)) => runtime.block_on(carry_out(&order, fixture, temporary)),
            (_, Err(error)) => Report::broken(error),
            (Err(error), _) => Report::broken(error),
        };
        println!("{}", serde_json::to_string(&report).unwrap_or_default());
    }
    ExitCode::SUCCESS
}

async fn carry_out(order: &Order, fixture: &Fixture, temporary: &Path) -> Report {
    let form = if order.full { Form::Full } else { Form::Small };
    let case = match Case::load(&order.folder, form) {
        Ok(case) => case,
        Err(error) => return Report::broken(error),
    };
    let mut notes = Vec::new();
    loop {
        match Trial::run(fixture, &case, order.way, temporary).await {
            Ok((problems, _)) if notes.is_empty() && late_only(&problems) => {
                notes.extend(problems.iter().map(|problem| format!("tried again: {}", problem.text())))
            }
            Ok((problems, memory)) => return Report { problems, notes, memory },
            Err(error) => return Report { notes, ..Report::broken(error) },
        }
    }
}

fn late_only(problems: &[Problem]) -> bool {
    !problems.is_empty() && problems.iter().all(|problem| matches!(problem, Problem::Time(_)))
}
