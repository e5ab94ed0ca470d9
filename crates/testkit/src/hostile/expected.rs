//! The expected outcome of a run, and its comparison with the observed one.

use crate::ObservedRun;
use heapstead_types::{Failure, Status};
use serde::Deserialize;

/// How much of a long text a failure message shows.
const SHOWN_CHARS_MAX: usize = 600;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    status: OneOrMore,
    /// The complete result of a completed run.
    result: Option<String>,
    #[serde(default)]
    result_contains: Vec<String>,
    #[serde(default)]
    result_lacks: Vec<String>,
    /// The error of a failed run contains all of these.
    #[serde(default)]
    error_contains: Vec<String>,
    /// The error contains at least one of these.
    #[serde(default)]
    error_any: Vec<String>,
    #[serde(default)]
    error_lacks: Vec<String>,
    /// The complete output.
    output: Option<String>,
    #[serde(default)]
    output_contains: Vec<String>,
    output_ends: Option<String>,
    #[serde(default)]
    output_dropped: bool,
    /// Maximum duration, for runs that end before their time limit.
    pub within_ms: Option<u64>,
    /// The worker crashes, which can't be avoided. In all other cases a crash fails the test.
    #[serde(default)]
    crash: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(Status),
    More(Vec<Status>),
}

impl OneOrMore {
    fn all(&self) -> &[Status] {
        match self {
            Self::One(status) => std::slice::from_ref(status),
            Self::More(statuses) => statuses,
        }
    }
}

impl Expected {
    /// A run that completes with this result.
    pub fn completed(result: &str) -> Self {
        Self {
            status: OneOrMore::One(Status::Completed),
            result: Some(result.to_owned()),
            result_contains: Vec::new(),
            result_lacks: Vec::new(),
            error_contains: Vec::new(),
            error_any: Vec::new(),
            error_lacks: Vec::new(),
            output: None,
            output_contains: Vec::new(),
            output_ends: None,
            output_dropped: false,
            within_ms: None,
            crash: false,
        }
    }

    pub fn may_complete(&self) -> bool {
        self.status.all().contains(&Status::Completed)
    }

    /// The differences from the expected outcome, except for time and memory.
    pub fn compare(&self, seen: &ObservedRun) -> Vec<String> {
        let mut wrong = Vec::new();
        if !self.status.all().contains(&seen.status) {
            wrong.push(format!("status: expected {:?}, got {}", self.status.all(), summary(seen)));
            return wrong;
        }
        if let Some(result) = &seen.result {
            same("result", self.result.as_deref(), result, &mut wrong);
            contains("result", &self.result_contains, result, &mut wrong);
            lacks("result", &self.result_lacks, result, &mut wrong);
        }
        if let Some(failure) = &seen.failure {
            let error = failure.to_string();
            contains("error", &self.error_contains, &error, &mut wrong);
            lacks("error", &self.error_lacks, &error, &mut wrong);
            if !self.error_any.is_empty() && !self.error_any.iter().any(|part| error.contains(part)) {
                wrong.push(format!("error: expected any of {:?} in {}", self.error_any, shown(&error)));
            }
            if !self.crash && !is_caused_by_code(failure) {
                wrong.push(format!("error: expected a failure caused by the code, got {}", shown(&error)));
            }
        }
        let output = String::from_utf8_lossy(&seen.output);
        same("output", self.output.as_deref(), &output, &mut wrong);
        contains("output", &self.output_contains, &output, &mut wrong);
        if let Some(end) = &self.output_ends
            && !output.ends_with(end)
        {
            wrong.push(format!("output: expected it to end with {end:?}, it has {} bytes", output.len()));
        }
        if seen.drops != usize::from(self.output_dropped) {
            wrong.push(format!(
                "output: expected {} notice(s) that output is dropped, got {}",
                usize::from(self.output_dropped),
                seen.drops
            ));
        }
        wrong
    }
}

/// Whether a failure is caused by the code, not by the engine.
fn is_caused_by_code(failure: &Failure) -> bool {
    matches!(
        failure,
        Failure::Exception(_)
            | Failure::Syntax(_)
            | Failure::MemoryCap { .. }
            | Failure::NeverSettles
            | Failure::ResultTooLarge
            | Failure::Unsaveable(_)
    )
}

fn same(what: &str, expected: Option<&str>, got: &str, wrong: &mut Vec<String>) {
    if let Some(expected) = expected.filter(|expected| *expected != got) {
        wrong.push(format!("{what}: expected {}, got {}", shown(expected), shown(got)));
    }
}

fn contains(what: &str, parts: &[String], got: &str, wrong: &mut Vec<String>) {
    for part in parts.iter().filter(|part| !got.contains(part.as_str())) {
        wrong.push(format!("{what}: expected {} in {}", shown(part), shown(got)));
    }
}

fn lacks(what: &str, parts: &[String], got: &str, wrong: &mut Vec<String>) {
    for part in parts.iter().filter(|part| got.contains(part.as_str())) {
        wrong.push(format!("{what}: expected no {} in {}", shown(part), shown(got)));
    }
}

/// A short description of a run.
pub fn summary(seen: &ObservedRun) -> String {
    let status = seen.status;
    match (&seen.result, &seen.failure) {
        (Some(result), _) => format!("{status:?} with {}", shown(result)),
        (_, Some(failure)) => format!("{status:?}: {}", shown(&failure.to_string())),
        _ => format!("{status:?} after {:?}", seen.wall),
    }
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}… ({} bytes)", &text[..end], text.len()),
    }
}
