//! Console output of executions: one file each, appended to as it is written, and an index that makes every page cost the same.
//!
//! ```text
//! ab/ab12….out    the text
//! ab/ab12….lines  for each whole block of 4,096 bytes: how many newlines there are before its end (u64, little endian)
//! ```
//! While an execution runs, these are local files in a folder, the spool. When it ends, they become blobs of the same names
//! ([`Blobs::adopt`]), and pages are read from there by range. On a single machine the spool is the folder of the blobs: the files stay where
//! they are and are synced.
//!
//! The index is derived from the text: entries that are missing after a crash are computed again. An execution that writes nothing has no files.

mod line_index;
mod output_file;
mod page;
mod writer;

pub use page::{BYTE_LIMIT_DEFAULT, BYTE_LIMIT_MAX, LINE_LIMIT_DEFAULT, LINE_LIMIT_MAX, LineBytes, OutputPage, PageRequest};
pub use writer::OutputWriter;
use writer::Target;

use crate::blobs::{BlobName, Blobs, FolderBlobs};
use heapstead_types::ExecutionId;
use line_index::LineIndex;
use output_file::OutputFile;
use sha2::{Digest, Sha256};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

const TEXT: &str = "out";
const INDEX: &str = "lines";

/// How much output there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    pub bytes: u64,
    /// Lines, the last of which may lack its newline once the execution has ended.
    pub lines: u64,
}

#[derive(Clone)]
pub struct Outputs {
    spool: PathBuf,
    blobs: Arc<dyn Blobs>,
    /// Whether the spool is the folder of the blobs.
    in_place: bool,
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
    /// Outputs in a folder, running and ended alike. The folder is created by the first write.
    pub fn new(folder: PathBuf) -> Self {
        Self { blobs: Arc::new(FolderBlobs::unopened(&folder)), spool: folder, in_place: true }
    }

    /// Ended outputs in these blobs, and running ones in a local folder, which is created by the first write.
    pub fn with_blobs(spool: PathBuf, blobs: Arc<dyn Blobs>) -> Self {
        Self { spool, blobs, in_place: false }
    }

    pub fn writer(&self, id: &ExecutionId) -> OutputWriter {
        let target = |kind| Target { path: self.path(id, kind), name: name(id, kind) };
        OutputWriter::new(target(TEXT), target(INDEX), self.blobs.clone())
    }

    /// A page of an output of this extent. `ended` tells whether a last line without newline counts as a line.
    pub fn page(&self, id: &ExecutionId, written: Extent, ended: bool, request: PageRequest) -> Result<OutputPage, OutputError> {
        if written.bytes == 0 {
            return Ok(page::empty(request));
        }
        let path = self.path(id, TEXT);
        let read = || {
            // An ended output is still in the spool if its writer died or could not upload it.
            if ended && (self.in_place || !path.exists()) {
                let file = |kind| OutputFile::blob(&*self.blobs, name(id, kind));
                page::read(&file(TEXT), &LineIndex(file(INDEX)), written, ended, request)
            } else {
                let index = OutputFile::local(&self.path(id, INDEX)).unwrap_or(OutputFile::Missing);
                page::read(&OutputFile::local(&path)?, &LineIndex(index), written, ended, request)
            }
        };
        read().map_err(OutputError::new("read", &path))
    }

    /// What is left of an output whose writer died: its extent, as of an ended execution, with a new index.
    pub fn recover(&self, id: &ExecutionId) -> Result<Extent, OutputError> {
        let path = self.path(id, TEXT);
        match writer::recover(&path, &self.path(id, INDEX)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Extent::default()),
            other => other.map_err(OutputError::new("recovered", &path)),
        }
    }

    /// How much another process has written so far.
    pub fn measure(&self, id: &ExecutionId) -> Result<Extent, OutputError> {
        let path = self.path(id, TEXT);
        match writer::measure(&path, &self.path(id, INDEX)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Extent::default()),
            other => other.map_err(OutputError::new("measured", &path)),
        }
    }

    pub fn remove(&self, id: &ExecutionId) {
        for kind in [TEXT, INDEX] {
            // Without a sync: a file that comes back after a power failure is removed for its age.
            let _ = std::fs::remove_file(self.path(id, kind));
            if !self.in_place {
                let _ = self.blobs.remove(&name(id, kind));
            }
        }
    }

    /// Removes files that were not written to for this long, whatever process created them.
    pub fn remove_older_than(&self, age: Duration) -> io::Result<()> {
        let Some(before) = SystemTime::now().checked_sub(age) else { return Ok(()) };
        let folders = match std::fs::read_dir(&self.spool) {
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
        writer::probe(&self.spool).map_err(OutputError::new("written", &self.spool))
    }

    fn path(&self, id: &ExecutionId, kind: &str) -> PathBuf {
        self.spool.join(name(id, kind).as_str())
    }
}

/// Spread over 256 folders by the first two digits of the id.
fn name(id: &ExecutionId, kind: &str) -> BlobName {
    let id = id.as_str();
    let name = format!("{}/{id}.{kind}", id.get(..2).unwrap_or(id));
    // Ids are hex digits. If one is not, it must not reach another file.
    name.parse().unwrap_or_else(|_| BlobName::of_content(&Sha256::digest(name).into()))
}
