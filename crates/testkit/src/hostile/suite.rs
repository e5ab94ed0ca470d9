//! The suite: one test per case and way, a few processes that run them, and a summary.

use super::case::{Case, CaseError, Form, Mode};
use super::trial::{Memory, Way};
use super::trial_process::{self, TRIAL_PROCESS_VARIABLE, TrialProcess};
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// If set, runs the full forms.
const TORTURE_VARIABLE: &str = "HEAPSTEAD_TORTURE";
/// Runs only the cases whose names start with this: `HOSTILE=012`.
const ONLY_VARIABLE: &str = "HOSTILE";
/// Concurrent trial processes. Most cases only wait for their time limit, so a few do not slow each other down on two cores.
const PROCESSES: usize = 5;
const SLOWEST_SHOWN: usize = 5;

/// Runs all cases of `folder`, or serves as a trial process if the suite started this process as one.
pub fn main(folder: &Path) -> ExitCode {
    if let Some(temporary) = std::env::var_os(TRIAL_PROCESS_VARIABLE) {
        return trial_process::serve(Path::new(&temporary));
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(PROCESSES);
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
    idle: Mutex<Vec<TrialProcess>>,
    processes_started: AtomicUsize,
    notes: Mutex<Vec<String>>,
    /// The trial whose worker used the largest share of its allowed memory.
    largest: Mutex<(Memory, String)>,
    took: Mutex<Vec<(Duration, String)>>,
}

impl Suite {
    fn new(folder: &Path, form: Form) -> Self {
        Self {
            folder: folder.to_owned(),
            form,
            idle: Mutex::default(),
            processes_started: AtomicUsize::new(0),
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
            self.note(format!("{refused} cases have no second run: their code does not compile, so it can't be stored on a heap"));
        }
        Ok(trials)
    }

    fn trial(self: &Arc<Self>, case: &str, way: Way) -> Trial {
        let (suite, case) = (self.clone(), case.to_owned());
        Trial::test(format!("{case}::{}", format!("{way:?}").to_lowercase()), move || suite.run(&case, way))
    }

    fn run(&self, case: &str, way: Way) -> Result<(), Failed> {
        let replay = self.replay(case);
        let mut process = self.process().map_err(|error| format!("the trial process can't be started: {error}"))?;
        let begun = Instant::now();
        let Some(report) = process.run(&self.folder.join(case), self.form, way) else {
            return Err(format!("the trial process died\n{replay}").into());
        };
        lock(&self.idle).push(process);
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

    /// The command that runs this case again.
    fn replay(&self, case: &str) -> String {
        let torture = if self.form == Form::Full { format!("{TORTURE_VARIABLE}=1 ") } else { String::new() };
        let number = case.split('_').next().unwrap_or(case);
        format!("replay: {torture}{ONLY_VARIABLE}={number} cargo test -p heapstead-testkit --release --test hostile")
    }

    fn process(&self) -> std::io::Result<TrialProcess> {
        let idle = lock(&self.idle).pop();
        idle.map_or_else(|| TrialProcess::start(self.processes_started.fetch_add(1, Relaxed)), Ok)
    }

    fn note(&self, text: String) {
        lock(&self.notes).push(text);
    }

    fn print_summary(&self) {
        // First ends the trial processes, because a leftover test thread of libtest-mimic would keep them and their engines alive.
        lock(&self.idle).clear();
        for note in lock(&self.notes).iter() {
            println!("note: {note}");
        }
        let mut took = lock(&self.took);
        took.sort();
        let slowest: Vec<String> =
            took.iter().rev().take(SLOWEST_SHOWN).map(|(time, trial)| format!("{trial} {:.1} s", time.as_secs_f64())).collect();
        println!("note: the slowest trials were {}", slowest.join(", "));
        let (memory, trial) = &*lock(&self.largest);
        println!("note: {trial} used the largest share of memory: {} MB of {} MB allowed", memory.peak_bytes >> 20, memory.bytes_max >> 20);
    }
}

fn ways(case: &Case) -> Vec<Way> {
    let file = &case.file;
    let mut ways = Vec::new();
    if file.mode != Mode::Stateless {
        ways.extend([Way::Fresh, Way::Session, Way::Live]);
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
