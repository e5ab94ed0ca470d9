//! Appends output as it comes. When `append` returns, the output can be read and survives the death of this process.

use super::line_index::{BLOCK_BYTES, ENTRY_BYTES, LineIndex, count_newlines};
use super::output_file::{OutputFile, into_io_error};
use super::{Extent, OutputError};
use crate::blobs::{BlobName, Blobs, LocalFile};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;

pub struct OutputWriter {
    text: Target,
    index: Target,
    /// Where both go when the output ends.
    blobs: Arc<dyn Blobs>,
    files: Option<Files>,
    counts: Counts,
    /// The bytes of a character whose rest has not come yet.
    unfinished: Vec<u8>,
}

/// A file in the spool, and the blob that it becomes.
pub struct Target {
    pub path: PathBuf,
    pub name: BlobName,
}

impl Target {
    fn complete<'a>(&'a self, file: &'a File) -> LocalFile<'a> {
        LocalFile { name: self.name.clone(), path: &self.path, file }
    }
}

struct Files {
    text: File,
    index: Option<File>,
}

/// What has been seen of a text so far.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    bytes: u64,
    newlines: u64,
    ends_in_newline: bool,
}

impl Counts {
    fn running(self) -> Extent {
        Extent { bytes: self.bytes, lines: self.newlines }
    }

    fn ended(self) -> Extent {
        let unfinished_line = self.bytes > 0 && !self.ends_in_newline;
        Extent { bytes: self.bytes, lines: self.newlines + u64::from(unfinished_line) }
    }

    /// Counts the text that follows, and returns the index entries of the blocks that it fills.
    fn take(&mut self, mut text: &[u8], mut filled: impl FnMut(u64)) {
        while !text.is_empty() {
            let room = (BLOCK_BYTES - self.bytes % BLOCK_BYTES) as usize;
            let (piece, rest) = text.split_at(room.min(text.len()));
            self.bytes += piece.len() as u64;
            self.newlines += count_newlines(piece);
            self.ends_in_newline = piece.ends_with(b"\n");
            if self.bytes.is_multiple_of(BLOCK_BYTES) {
                filled(self.newlines);
            }
            text = rest;
        }
    }
}

impl OutputWriter {
    pub(super) fn new(text: Target, index: Target, blobs: Arc<dyn Blobs>) -> Self {
        Self { text, index, blobs, files: None, counts: Counts::default(), unfinished: Vec::new() }
    }

    /// What can be read of a running execution: lines are those that have their newline.
    pub fn extent(&self) -> Extent {
        self.counts.running()
    }

    /// Whether nothing was written, so that there is nothing to sync.
    pub fn is_empty(&self) -> bool {
        self.files.is_none() && self.unfinished.is_empty()
    }

    /// Appends what the code wrote. What is not UTF-8 becomes replacement characters, so that every reader gets text.
    pub fn append(&mut self, bytes: Vec<u8>) -> Result<(), OutputError> {
        let mut bytes = if self.unfinished.is_empty() { bytes } else { [std::mem::take(&mut self.unfinished), bytes].concat() };
        if let Err(error) = std::str::from_utf8(&bytes) {
            if error.error_len().is_none() {
                self.unfinished = bytes.split_off(error.valid_up_to());
            } else {
                let cut = unfinished_at(&bytes);
                self.unfinished = bytes.split_off(cut);
                bytes = String::from_utf8_lossy(&bytes).into_owned().into_bytes();
            }
        }
        self.write(&bytes)
    }

    /// Turns what was written into blobs, which survive a power failure. Returns the extent of an ended execution.
    pub fn finish(mut self) -> Result<Extent, OutputError> {
        if !self.unfinished.is_empty() {
            let rest = String::from_utf8_lossy(&std::mem::take(&mut self.unfinished)).into_owned();
            self.write(rest.as_bytes())?;
        }
        if let Some(files) = &self.files {
            // The index first: a reader that finds the text also finds its index.
            let index = files.index.as_ref().map(|file| self.index.complete(file));
            let adopted: Vec<_> = index.into_iter().chain([self.text.complete(&files.text)]).collect();
            self.blobs.adopt(&adopted).map_err(|error| OutputError::new("synced", &self.text.path)(into_io_error(error)))?;
        }
        Ok(self.counts.ended())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), OutputError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.try_write(bytes).map_err(OutputError::new("written", &self.text.path))
    }

    fn try_write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let files = match &mut self.files {
            Some(files) => files,
            none => none.insert(Files { text: create(&self.text.path)?, index: None }),
        };
        let mut counts = self.counts;
        let mut entries = Vec::new();
        counts.take(bytes, |newlines| entries.extend_from_slice(&newlines.to_le_bytes()));
        // At its place rather than at the end: what a failed write left of itself is written over.
        files.text.write_all_at(bytes, self.counts.bytes)?;
        if !entries.is_empty() {
            let index = match &mut files.index {
                Some(index) => index,
                none => none.insert(create(&self.index.path)?),
            };
            index.write_all_at(&entries, self.counts.bytes / BLOCK_BYTES * ENTRY_BYTES)?;
        }
        self.counts = counts;
        Ok(())
    }
}

/// Where a character begins that the end cuts short; the end when none is.
fn unfinished_at(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(3);
    (tail..bytes.len())
        .find(
            |start| matches!(std::str::from_utf8(&bytes[*start..]), Err(error) if error.valid_up_to() == 0 && error.error_len().is_none()),
        )
        .unwrap_or(bytes.len())
}

fn create(path: &Path) -> io::Result<File> {
    let options = || OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(path);
    match (options(), path.parent()) {
        (Err(error), Some(folder)) if error.kind() == io::ErrorKind::NotFound => {
            DirBuilder::new().mode(FOLDER_MODE).recursive(true).create(folder)?;
            options()
        }
        (opened, _) => opened,
    }
}

/// Counts a text from its beginning, truncates an incomplete character at its end, and writes its index again.
pub fn recover(path: &Path, index_path: &Path) -> io::Result<Extent> {
    let mut text = OpenOptions::new().read(true).write(true).open(path)?;
    text.set_len(whole_bytes(&text)?)?;
    let (mut counts, mut entries, mut buffer) = (Counts::default(), Vec::new(), vec![0; 64 << 10]);
    loop {
        match text.read(&mut buffer)? {
            0 => break,
            count => counts.take(&buffer[..count], |newlines| entries.extend_from_slice(&newlines.to_le_bytes())),
        }
    }
    if !entries.is_empty() {
        create(index_path)?.write_all(&entries)?;
    }
    Ok(counts.ended())
}

/// The length of a text up to its last whole character: the writer may be in the middle of one.
fn whole_bytes(text: &File) -> io::Result<u64> {
    let length = text.metadata()?.len();
    let tail_bytes = length.min(4);
    let mut tail = vec![0; tail_bytes as usize];
    text.read_exact_at(&mut tail, length - tail_bytes)?;
    Ok(length - (tail.len() - unfinished_at(&tail)) as u64)
}

/// The extent of what another process is writing.
pub fn measure(path: &Path, index_path: &Path) -> io::Result<Extent> {
    let text = File::open(path)?;
    let index = LineIndex(OutputFile::local(index_path).unwrap_or(OutputFile::Missing));
    let bytes = whole_bytes(&text)?;
    // The index may be a moment behind the text.
    let mut block = bytes / BLOCK_BYTES;
    let newlines = loop {
        match index.newlines_before(block) {
            Ok(newlines) => break newlines,
            Err(_) => block -= 1,
        }
    };
    let mut rest = vec![0; (bytes - block * BLOCK_BYTES) as usize];
    text.read_exact_at(&mut rest, block * BLOCK_BYTES)?;
    Ok(Extent { bytes, lines: newlines + count_newlines(&rest) })
}

/// Writes a block and removes it again.
pub fn probe(folder: &Path) -> io::Result<()> {
    let path = folder.join(format!(".probe-{}", std::process::id()));
    let written = create(&path).and_then(|mut file| file.write_all(&[0; BLOCK_BYTES as usize]));
    let removed = std::fs::remove_file(&path);
    written.and(removed)
}
