//! The source of a run's code: a file, standard input or the command line.

use heapstead_types::{LimitError, limits};
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct SourceOptions {
    /// File with the code; `-` reads standard input, which is the default in a pipe
    #[arg(value_name = "FILE", conflicts_with = "eval")]
    file: Option<PathBuf>,
    /// Code to run
    #[arg(short, long, value_name = "CODE", allow_hyphen_values = true)]
    eval: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("there is nothing to run: give a FILE, `-` for standard input, or `-e CODE`")]
    Missing,
    #[error("FILE is `{}`, which can't be read: {error}. Give a file with JavaScript or TypeScript", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("standard input can't be read: {0}")]
    StandardInput(io::Error),
    #[error("{from} is not UTF-8 text: expected JavaScript or TypeScript source")]
    NotText { from: String },
    #[error("{from}: {error}")]
    Bounds { from: String, error: LimitError },
}

impl SourceOptions {
    pub fn read(self) -> Result<String, SourceError> {
        match (self.eval, self.file) {
            (Some(code), _) => checked("-e".into(), code),
            (None, Some(file)) if file.as_os_str() == "-" => read_standard_input(),
            (None, Some(file)) => read_file(&file),
            (None, None) if io::stdin().is_terminal() => Err(SourceError::Missing),
            (None, None) => read_standard_input(),
        }
    }
}

pub fn read_file(path: &Path) -> Result<String, SourceError> {
    let unreadable = |error| SourceError::Unreadable { path: path.into(), error };
    let bytes = File::open(path).and_then(read_bounded).map_err(unreadable)?;
    text(format!("FILE `{}`", path.display()), bytes)
}

fn read_standard_input() -> Result<String, SourceError> {
    let bytes = read_bounded(io::stdin().lock()).map_err(SourceError::StandardInput)?;
    text("standard input".into(), bytes)
}

/// Reads at most one byte more than the limit, so that a source over the limit is recognised.
fn read_bounded(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(limits::SOURCE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn text(from: String, bytes: Vec<u8>) -> Result<String, SourceError> {
    // Checked before the UTF-8 check, because a cut inside a character would look like invalid text.
    if bytes.len() > limits::SOURCE_BYTES_MAX {
        return Err(SourceError::Bounds { from, error: LimitError::CodeTooLong { bytes: bytes.len() } });
    }
    match String::from_utf8(bytes) {
        Ok(code) => checked(from, code),
        Err(_) => Err(SourceError::NotText { from }),
    }
}

fn checked(from: String, code: String) -> Result<String, SourceError> {
    match limits::code(&code) {
        Ok(()) => Ok(code),
        Err(error) => Err(SourceError::Bounds { from, error }),
    }
}
