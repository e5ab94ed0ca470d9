//! What a run looks like to somebody who watches: output and result on standard output, everything about the run on standard error.

use super::colours::Colours;
use super::hints;
use heapstead_service::Finished;
use std::io::{self, Write};

pub struct Screen {
    out: Colours,
    err: Colours,
    at_line_start: bool,
    /// Nobody reads standard output any more, as after `| head`. The run goes on: its heap is wanted all the same.
    closed: bool,
}

impl Screen {
    pub fn new() -> Self {
        Self { out: Colours::of(&io::stdout()), err: Colours::of(&io::stderr()), at_line_start: true, closed: false }
    }

    /// Console output, at once and as it is.
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

    /// Whether nobody reads standard output any more.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// The result, on a line of its own.
    pub fn result(&mut self, text: &str) {
        let separator = if self.at_line_start { "" } else { "\n" };
        let line = format!("{separator}{}\n", painted(self.out, text));
        self.output(line.as_bytes());
    }

    /// What went wrong and what helps, and what the caller should know besides.
    pub fn troubles(&self, finished: &Finished) {
        for warning in &finished.record.warnings {
            self.note(&format!("{} {warning}", self.err.yellow("warning:")));
        }
        if let Some(error) = &finished.record.error {
            self.error(error);
        }
        if let Some(hint) = hints::next_step(&finished.end) {
            self.next_step(&hint);
        }
    }

    pub fn next_step(&self, hint: &str) {
        self.note(&format!("{} {hint}", self.err.cyan("next:")));
    }

    pub fn error(&self, text: &str) {
        self.note(&format!("{} {text}", self.err.red("error:")));
    }

    /// Something about the run, on standard error. If that is closed too, there is nobody to tell.
    pub fn note(&self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// A remark that matters less than what is around it.
    pub fn aside(&self, text: &str) {
        self.note(&self.err.dim(text));
    }
}

/// By its look: the text is JSON where JSON can hold the value, else an inspection.
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
