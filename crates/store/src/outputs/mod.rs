//! Console output of executions: one file each, appended to as it is written, and an index that makes every page cost the same.
//!
//! ```text
//! <folder>/ab/ab12….out    the text
//! <folder>/ab/ab12….lines  for each whole block of 4,096 bytes: how many newlines there are before its end (u64, little endian)
//! ```
//! The index is derived from the text: what is missing of it after a crash is made again. An execution that writes nothing has no files.

mod line_index;
mod page;
mod writer;

pub use page::{BYTE_LIMIT_DEFAULT, BYTE_LIMIT_MAX, LINE_LIMIT_DEFAULT, LINE_LIMIT_MAX, LineBytes, OutputPage, PageRequest};
pub use writer::OutputWriter;

use heapstead_types::ExecutionId;
use line_index::LineIndex;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How much output there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    pub bytes: u64,
    /// Lines, the last of which may lack its newline once the execution has ended.
    pub lines: u64,
}

#[derive(Debug, Clone)]
pub struct Outputs {
    folder: PathBuf,
}

#[derive(Debug, thiserror::Error)]
#[error("output in {} can't be {what}: {error}", path.display())]
pub struct OutputError {
    what: &'static str,
    path: PathBuf,
    error: io::Error,
}

impl OutputError {
    fn new(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self { what, path, error }
    }
}

impl Outputs {
    /// The folder is made when it is first written to.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub fn writer(&self, id: &ExecutionId) -> OutputWriter {
        OutputWriter::new(self.path(id, "out"), self.path(id, "lines"))
    }

    /// A page of an output of this extent; `ended` tells whether a last line without newline is a line.
    pub fn page(&self, id: &ExecutionId, written: Extent, ended: bool, request: PageRequest) -> Result<OutputPage, OutputError> {
        let path = self.path(id, "out");
        let failed = OutputError::new("read", &path);
        let text = match File::open(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == ErrorKind::NotFound && written.bytes == 0 => None,
            Err(error) => return Err(failed(error)),
        };
        let index = LineIndex::open(&self.path(id, "lines"));
        page::read(text.as_ref(), &index, written, ended, request).map_err(failed)
    }

    /// What is left of an output whose writer died: its extent, as of an ended execution, with the index made anew.
    pub fn recover(&self, id: &ExecutionId) -> Result<Extent, OutputError> {
        let path = self.path(id, "out");
        match writer::recover(&path, &self.path(id, "lines")) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Extent::default()),
            other => other.map_err(OutputError::new("recovered", &path)),
        }
    }

    /// How much another process has written so far.
    pub fn measure(&self, id: &ExecutionId) -> Result<Extent, OutputError> {
        let path = self.path(id, "out");
        match writer::measure(&path, &LineIndex::open(&self.path(id, "lines"))) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Extent::default()),
            other => other.map_err(OutputError::new("measured", &path)),
        }
    }

    pub fn remove(&self, id: &ExecutionId) {
        for kind in ["out", "lines"] {
            let _ = std::fs::remove_file(self.path(id, kind));
        }
    }

    /// Removes files that nothing was written to for this long, whoever left them.
    pub fn remove_older_than(&self, age: Duration) -> io::Result<()> {
        let Some(before) = SystemTime::now().checked_sub(age) else { return Ok(()) };
        let folders = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        for folder in folders.flatten() {
            for file in std::fs::read_dir(folder.path())?.flatten() {
                if file.metadata().and_then(|metadata| metadata.modified()).is_ok_and(|modified| modified < before) {
                    let _ = std::fs::remove_file(file.path());
                }
            }
        }
        Ok(())
    }

    /// Whether output could be written now: tries it.
    pub fn check(&self) -> Result<(), OutputError> {
        writer::probe(&self.folder).map_err(OutputError::new("written", &self.folder))
    }

    fn path(&self, id: &ExecutionId, kind: &str) -> PathBuf {
        let id = id.as_str();
        self.folder.join(id.get(..2).unwrap_or(id)).join(format!("{id}.{kind}"))
    }
}
