//! The suite: one test per case and way, a few lanes to run them on, and a summary that hides nothing.

use super::case::{Case, CaseError, Form, Mode};
use super::lane::{self, LANE_VARIABLE, Lane};
use super::trial::{Memory, Way};
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Runs the full forms.
const TORTURE_VARIABLE: &str = "HEAPSTEAD_TORTURE";
/// Runs only the cases whose names begin so: `HOSTILE=012`.
const ONLY_VARIABLE: &str = "HOSTILE";
/// Most looping cases wait for their limit, so a few at once don't disturb each other on two cores.
const LANES: usize = 5;
const SLOWEST_SHOWN: usize = 5;

/// Runs all cases of `folder`, or serves as a lane when the suite started this process as one.
pub fn main(folder: &Path) -> ExitCode {
    if let Some(temporary) = std::env::var_os(LANE_VARIABLE) {
        return lane::serve(Path::new(&temporary));
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(LANES);
    let form = if std::env::var_os(TORTURE_VARIABLE).is_some_and(|value| value == "1") { Form::Full } else { Form::Small };
    let suite = Arc::new(Suite::new(folder, form));
    match suite.trials() {
        Ok(trials) => {
            let conclusion = libtest_mimic::run(&arguments, trials);
            suite.print_summary();
            conclusion.exit_code()
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

struct Suite {
    folder: PathBuf,
    form: Form,
    idle: Mutex<Vec<Lane>>,
    lanes_started: AtomicUsize,
    notes: Mutex<Vec<String>>,
    /// The trial whose worker came nearest to what it may use.
    largest: Mutex<(Memory, String)>,
    took: Mutex<Vec<(Duration, String)>>,
}

impl Suite {
    fn new(folder: &Path, form: Form) -> Self {
        Self {
            folder: folder.to_owned(),
            form,
            idle: Mutex::default(),
            lanes_started: AtomicUsize::new(0),
            notes: Mutex::default(),
            largest: Mutex::default(),
            took: Mutex::default(),
        }
    }

    fn trials(self: &Arc<Self>) -> Result<Vec<Trial>, CaseError> {
        let only = std::env::var(ONLY_VARIABLE).unwrap_or_default();
        let cases = Case::load_all(&self.folder, self.form)?;
        let mut refused = 0;
        let mut trials = Vec::new();
        for case in cases.iter().filter(|case| case.name.starts_with(&only)) {
            let ways = ways(case);
            refused += usize::from(case.file.does_not_compile);
            trials.extend(ways.into_iter().map(|way| self.trial(&case.name, way)));
        }
        if refused > 0 {
            self.note(format!("{refused} cases have no second run: their code does not compile, so nothing of it can be on a heap"));
        }
        Ok(trials)
    }

    fn trial(self: &Arc<Self>, case: &str, way: Way) -> Trial {
        let (suite, case) = (self.clone(), case.to_owned());
        Trial::test(format!("{case}::{}", format!("{way:?}").to_lowercase()), move || suite.run(&case, way))
    }

    fn run(&self, case: &str, way: Way) -> Result<(), Failed> {
        let replay = self.replay(case);
        let mut lane = self.lane().map_err(|error| format!("no lane can be started: {error}"))?;
        let begun = Instant::now();
        let Some(report) = lane.order(&self.folder.join(case), self.form, way) else {
            return Err(format!("the process that ran the engine died over it\n{replay}").into());
        };
        lock(&self.idle).push(lane);
        lock(&self.took).push((begun.elapsed(), format!("{case} ({way:?})")));
        let mut largest = lock(&self.largest);
        if report.memory.share() > largest.0.share() {
            *largest = (report.memory, format!("{case} ({way:?})"));
        }
        drop(largest);
        report.notes.into_iter().for_each(|note| self.note(format!("{case} ({way:?}): {note}")));
        if report.problems.is_empty() {
            return Ok(());
        }
        let problems: Vec<&str> = report.problems.iter().map(|problem| problem.text()).collect();
        Err(format!("{}\n{replay}", problems.join("\n")).into())
    }

    /// The one command that runs this case again.
    fn replay(&self, case: &str) -> String {
        let torture = if self.form == Form::Full { format!("{TORTURE_VARIABLE}=1 ") } else { String::new() };
        let number = case.split('_').next().unwrap_or(case);
        format!("replay: {torture}{ONLY_VARIABLE}={number} cargo test -p heapstead-testkit --release --test hostile")
    }

    fn lane(&self) -> std::io::Result<Lane> {
        let idle = lock(&self.idle).pop();
        idle.map_or_else(|| Lane::start(self.lanes_started.fetch_add(1, Relaxed)), Ok)
    }

    fn note(&self, text: String) {
        lock(&self.notes).push(text);
    }

    fn print_summary(&self) {
        // The lanes first: a test thread that libtest-mimic leaves behind would keep them, and their engines, alive.
        lock(&self.idle).clear();
        for note in lock(&self.notes).iter() {
            println!("note: {note}");
        }
        let mut took = lock(&self.took);
        took.sort();
        let slowest: Vec<String> =
            took.iter().rev().take(SLOWEST_SHOWN).map(|(time, trial)| format!("{trial} {:.1} s", time.as_secs_f64())).collect();
        println!("note: the slowest were {}", slowest.join(", "));
        let (memory, trial) = &*lock(&self.largest);
        println!("note: the most memory was taken by {trial}: {} MB of {} MB explained", memory.peak_bytes >> 20, memory.bytes_max >> 20);
    }
}

fn ways(case: &Case) -> Vec<Way> {
    let file = &case.file;
    let mut ways = Vec::new();
    if file.mode != Mode::Stateless {
        ways.extend([Way::Fresh, Way::Session]);
        ways.extend((!file.does_not_compile).then_some(Way::Second));
    }
    if file.mode != Mode::Stateful {
        ways.push(Way::Stateless);
    }
    ways.extend(file.chain.is_some().then_some(Way::Chain));
    ways.extend(file.many.is_some().then_some(Way::Many));
    ways
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
