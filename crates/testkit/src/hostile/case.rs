//! One case: a folder with a program and its expected outcome.

use super::expected::Expected;
use heapstead_types::Limits;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Default timeout of a run: enough for every program that ends by itself.
const TIMEOUT_SECS: u32 = 10;
pub const OUTPUT_BYTES_MAX: u64 = 1 << 20;
/// Name of the function that a program is stored as on a heap.
const KEPT: &str = "keptProgram";

#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    #[error("{path}: {error}")]
    Io { path: PathBuf, error: std::io::Error },
    #[error("{path}: {error}")]
    Toml { path: PathBuf, error: Box<toml::de::Error> },
    #[error("{folder}: expected main.js or main.ts")]
    NoProgram { folder: PathBuf },
}

/// How much of a case is run: `make test` runs the small form, `make torture` the full one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Small,
    Full,
}

#[derive(Debug, Clone)]
pub struct Case {
    pub name: String,
    pub code: String,
    /// Code that creates the heap for the second run, if the program itself should not: `prefix.js`.
    pub prefix: Option<String>,
    pub file: CaseFile,
    form: Form,
}

/// The content of `expect.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseFile {
    /// What the program tries, in one sentence.
    #[allow(dead_code, reason = "for the reader of the case; required, so that every case has it")]
    what: String,
    #[serde(default)]
    pub mode: Mode,
    /// Whether the program is refused before it runs. It can't be stored on a heap then, so it has no second run.
    #[serde(default)]
    pub does_not_compile: bool,
    heap_mb: Option<Sized<u32>>,
    timeout_secs: Option<Sized<u32>>,
    /// Values for `$NAME` in the program.
    #[serde(default)]
    parameters: BTreeMap<String, Parameter>,
    /// How the run must end.
    pub ends: Expected,
    /// How the second run, on the heap of the first, must end. If omitted, as the first.
    pub second: Option<Expected>,
    /// Code that runs on the heap afterwards, and how it must end: a poisoned heap must not falsify results.
    pub after: Option<After>,
    /// Runs repeatedly on its own heap until it fails.
    pub chain: Option<Chain>,
    /// Runs many times on fresh heaps, a few concurrently.
    pub many: Option<Many>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    #[default]
    Stateful,
    Stateless,
    Both,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct After {
    pub code: String,
    /// A cap that differs from the one that the heap was saved with.
    pub heap_mb: Option<u32>,
    pub ends: Expected,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// How many runs must complete first, at least.
    pub completes_min: usize,
    pub runs_max: usize,
    /// How the first run that does not complete must end.
    pub ends: Expected,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Many {
    runs: Sized<usize>,
}

/// A value that may differ between the two forms.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Sized<T> {
    Same(T),
    Forms { small: T, full: T },
}

impl<T: Copy> Sized<T> {
    fn of(self, form: Form) -> T {
        match (self, form) {
            (Self::Same(value), _) | (Self::Forms { small: value, .. }, Form::Small) | (Self::Forms { full: value, .. }, Form::Full) => {
                value
            }
        }
    }
}

/// A number, or a text repeated that many times.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Parameter {
    Repeated { text: String, times: Sized<usize> },
    Number(Sized<i64>),
}

impl Parameter {
    fn of(&self, form: Form) -> String {
        match self {
            Self::Repeated { text, times } => text.repeat(times.of(form)),
            Self::Number(number) => number.of(form).to_string(),
        }
    }
}

impl Case {
    pub fn load(folder: &Path, form: Form) -> Result<Self, CaseError> {
        let program = ["main.js", "main.ts"].map(|name| folder.join(name)).into_iter().find(|path| path.exists());
        let program = program.ok_or_else(|| CaseError::NoProgram { folder: folder.to_owned() })?;
        let expectations = folder.join("expect.toml");
        let mut file: CaseFile =
            toml::from_str(&read(&expectations)?).map_err(|error| CaseError::Toml { path: expectations, error: Box::new(error) })?;
        let prefix = folder.join("prefix.js");
        let prefix = if prefix.exists() { Some(fill_in(&read(&prefix)?, &file.parameters, form)) } else { None };
        let code = fill_in(&read(&program)?, &file.parameters, form);
        if let Some(after) = &mut file.after {
            after.code = fill_in(&after.code, &file.parameters, form);
        }
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Self { name, code, prefix, file, form })
    }

    /// All cases of a folder, in order.
    pub fn load_all(folder: &Path, form: Form) -> Result<Vec<Self>, CaseError> {
        let entries = std::fs::read_dir(folder).map_err(|error| CaseError::Io { path: folder.to_owned(), error })?;
        let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        folders.sort();
        folders.iter().map(|folder| Self::load(folder, form)).collect()
    }

    pub fn limits(&self) -> Limits {
        let defaults = Limits::default();
        Limits {
            heap_mb: self.file.heap_mb.map_or(defaults.heap_mb, |mb| mb.of(self.form)),
            timeout_secs: self.file.timeout_secs.map_or(TIMEOUT_SECS, |secs| secs.of(self.form)),
            output_bytes_max: OUTPUT_BYTES_MAX,
        }
    }

    /// For a program that never completes, and so saves nothing: code that stores it as a function on the heap, with the same line numbers.
    pub fn storing_code(&self) -> String {
        format!("globalThis.{KEPT} = async () => {{ {}\n}}; \"saved\";", self.code)
    }

    /// Calls the function that [`Self::storing_code`] stored.
    pub fn stored_code(&self) -> String {
        format!("await {KEPT}();")
    }

    /// Whether checks that take long are made: for every fourth case in the small form.
    pub fn is_sampled(&self) -> bool {
        let number = self.name.split('_').next().and_then(|number| number.parse::<u32>().ok());
        self.form == Form::Full || number.is_none_or(|number| number.is_multiple_of(4))
    }

    pub fn many_runs(&self) -> usize {
        self.file.many.as_ref().map_or(0, |many| many.runs.of(self.form))
    }
}

fn read(path: &Path) -> Result<String, CaseError> {
    std::fs::read_to_string(path).map_err(|error| CaseError::Io { path: path.to_owned(), error })
}

/// Replaces longer names first, so that `$DEPTH_MAX` is not replaced as `$DEPTH`.
fn fill_in(code: &str, parameters: &BTreeMap<String, Parameter>, form: Form) -> String {
    let mut names: Vec<&String> = parameters.keys().collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    names.into_iter().fold(code.to_owned(), |code, name| code.replace(&format!("${name}"), &parameters[name].of(form)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_differ_between_the_forms() {
        let parameters: BTreeMap<String, Parameter> =
            toml::from_str("N = 3\nN_MAX = { small = 10, full = 1_000 }\nOPEN = { text = '(', times = { small = 2, full = 4 } }")
                .expect("parameters");
        assert_eq!(fill_in("$OPEN $N $N_MAX", &parameters, Form::Small), "(( 3 10");
        assert_eq!(fill_in("$OPEN $N $N_MAX", &parameters, Form::Full), "(((( 3 1000");
    }

    #[test]
    fn an_unknown_key_is_refused() {
        let text = "what = 'x'\nhep_mb = 8\n[ends]\nstatus = 'failed'";
        assert!(toml::from_str::<CaseFile>(text).expect_err("refused").to_string().contains("hep_mb"));
    }
}
