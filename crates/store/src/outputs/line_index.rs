//! Where lines begin, without reading what stands before them: newlines counted up to the end of every block.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

pub const BLOCK_BYTES: u64 = 4096;
pub const ENTRY_BYTES: u64 = 8;

pub struct LineIndex(Option<File>);

impl LineIndex {
    /// An index that is not there is that of an output shorter than a block.
    pub fn open(path: &Path) -> Self {
        Self(File::open(path).ok())
    }

    /// Newlines before the block.
    pub fn newlines_before(&self, block: u64) -> io::Result<u64> {
        match (block.checked_sub(1), &self.0) {
            (None, _) => Ok(0),
            (Some(_), None) => Err(io::ErrorKind::NotFound.into()),
            (Some(entry), Some(file)) => {
                let mut bytes = [0; ENTRY_BYTES as usize];
                file.read_exact_at(&mut bytes, entry * ENTRY_BYTES)?;
                Ok(u64::from_le_bytes(bytes))
            }
        }
    }

    /// Newlines in the first `offset` bytes of the text.
    pub fn newlines_up_to(&self, text: &File, offset: u64) -> io::Result<u64> {
        let block = offset / BLOCK_BYTES;
        let mut head = vec![0; (offset % BLOCK_BYTES) as usize];
        text.read_exact_at(&mut head, block * BLOCK_BYTES)?;
        Ok(self.newlines_before(block)? + count_newlines(&head))
    }

    /// The byte after the newline with this number (1 is the first), in a text of `bytes` bytes that has that many.
    pub fn after_newline(&self, text: &File, bytes: u64, number: u64) -> io::Result<u64> {
        if number == 0 {
            return Ok(0);
        }
        // The last block before which there are fewer newlines holds it.
        let (mut low, mut high) = (0, bytes / BLOCK_BYTES);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.newlines_before(middle)? < number { low = middle } else { high = middle - 1 }
        }
        let start = low * BLOCK_BYTES;
        let mut block = vec![0; BLOCK_BYTES.min(bytes - start) as usize];
        text.read_exact_at(&mut block, start)?;
        let within = number - self.newlines_before(low)?;
        let newlines = block.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        match newlines.map(|(position, _)| position as u64).nth((within - 1) as usize) {
            Some(position) => Ok(start + position + 1),
            None => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

pub fn count_newlines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}
