//! Prints runs for the terminal: output and result on standard output, everything else on standard error.

use super::colours::Colours;
use super::hints;
use heapstead_service::FinishedRun;
use heapstead_types::ErrorCode;
use std::io::{self, Write};

pub struct Screen {
    out: Colours,
    err: Colours,
    at_line_start: bool,
    /// Standard output is closed, as after `| head`. The run continues, because its heap is still needed.
    closed: bool,
}

impl Screen {
    pub fn new() -> Self {
        Self { out: Colours::of(&io::stdout()), err: Colours::of(&io::stderr()), at_line_start: true, closed: false }
    }

    /// Prints console output immediately and unchanged.
    pub fn output(&mut self, bytes: &[u8]) {
        if self.closed {
            return;
        }
        let mut out = io::stdout().lock();
        self.closed = out.write_all(bytes).and_then(|()| out.flush()).is_err();
        if let Some(last) = bytes.last() {
            self.at_line_start = *last == b'\n';
        }
    }

    /// Whether standard output is closed.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Prints the result on its own line.
    pub fn result(&mut self, text: &str) {
        let separator = if self.at_line_start { "" } else { "\n" };
        let line = format!("{separator}{}\n", painted(self.out, text));
        self.output(line.as_bytes());
    }

    /// Prints the error with a hint, and warnings.
    pub fn error_and_warnings(&self, finished: &FinishedRun) {
        self.problems(&finished.record.warnings, finished.record.error.as_deref(), finished.end.error_code());
    }

    /// As [`Self::error_and_warnings`], of a run that was recorded elsewhere.
    pub fn problems(&self, warnings: &[String], error: Option<&str>, error_code: Option<ErrorCode>) {
        for warning in warnings {
            self.warning(warning);
        }
        if let Some(error) = error {
            self.error(error);
        }
        if let Some(hint) = error_code.and_then(hints::next_step) {
            self.next_step(&hint);
        }
    }

    pub fn warning(&self, text: &str) {
        self.note(&format!("{} {text}", self.err.yellow("warning:")));
    }

    pub fn next_step(&self, hint: &str) {
        self.note(&format!("{} {hint}", self.err.cyan("next:")));
    }

    pub fn error(&self, text: &str) {
        self.note(&format!("{} {text}", self.err.red("error:")));
    }

    /// Prints a note about the run on standard error. If that is closed too, the note is dropped.
    pub fn note(&self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// Prints a less important note.
    pub fn aside(&self, text: &str) {
        self.note(&self.err.dim(text));
    }
}

/// Coloured by its form: the text is JSON if JSON can represent the value, else an inspection.
fn painted(colours: Colours, result: &str) -> String {
    match result.as_bytes() {
        b"undefined" => colours.dim(result),
        b"null" | b"true" | b"false" | b"NaN" | b"Infinity" | b"-Infinity" => colours.yellow(result),
        [b'"', ..] => colours.green(result),
        [b'0'..=b'9', ..] | [b'-', b'0'..=b'9', ..] => colours.yellow(result),
        [b'[', b'F' | b'A' | b'G' | b'c', ..] => colours.cyan(result),
        _ => result.to_owned(),
    }
}
