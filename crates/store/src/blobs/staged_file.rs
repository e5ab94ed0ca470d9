//! A file that is written piece by piece and becomes a blob at its end. Until then it has a temporary name; dropping it removes it.

use super::durable_file;
use super::error::BlobError;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use tempfile::NamedTempFile;

pub struct StagedFile {
    temporary: NamedTempFile,
    bytes: u64,
}

impl StagedFile {
    /// In the folder that [`Blobs::staging`](super::Blobs::staging) names.
    pub fn create_in(folder: &Path) -> Result<Self, BlobError> {
        Ok(Self { temporary: durable_file::temporary_in(folder)?, bytes: 0 })
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<(), BlobError> {
        let path = self.temporary.path().to_owned();
        self.temporary.as_file_mut().write_all(bytes).map_err(BlobError::unavailable("write", path))?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What was written so far.
    pub fn file(&self) -> &File {
        self.temporary.as_file()
    }

    /// Another descriptor of the file, which stays readable without its name.
    pub fn reopened(&self) -> Result<File, BlobError> {
        self.temporary.as_file().try_clone().map_err(BlobError::unavailable("read", self.temporary.path()))
    }

    pub(super) fn into_temporary(self) -> NamedTempFile {
        self.temporary
    }
}
