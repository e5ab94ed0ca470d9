//! Finds lines without reading the text before them: for every whole block of the text, the newlines before its end.

use super::output_file::OutputFile;
use std::io;

pub const BLOCK_BYTES: u64 = 4096;
pub const ENTRY_BYTES: u64 = 8;

pub struct LineIndex<'a>(pub OutputFile<'a>);

impl LineIndex<'_> {
    /// Newlines before the block. A number that can't be right, because there are fewer bytes, is an error.
    pub fn newlines_before(&self, block: u64) -> io::Result<u64> {
        let Some(entry) = block.checked_sub(1) else { return Ok(0) };
        let bytes = self.0.read(entry * ENTRY_BYTES..(entry + 1) * ENTRY_BYTES)?;
        let bytes = bytes.try_into().map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let newlines = u64::from_le_bytes(bytes);
        if newlines <= block * BLOCK_BYTES { Ok(newlines) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    /// Newlines in the first `offset` bytes of the text.
    pub fn newlines_up_to(&self, text: &OutputFile<'_>, offset: u64) -> io::Result<u64> {
        let block = offset / BLOCK_BYTES;
        let head = text.read(block * BLOCK_BYTES..offset)?;
        Ok(self.newlines_before(block)? + count_newlines(&head))
    }

    /// The byte after the newline with this number (1 is the first), in a text of `bytes` bytes that has that many.
    pub fn after_newline(&self, text: &OutputFile<'_>, bytes: u64, number: u64) -> io::Result<u64> {
        if number == 0 {
            return Ok(0);
        }
        // It is in the last block before which there are fewer newlines.
        let (mut low, mut high) = (0, bytes / BLOCK_BYTES);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.newlines_before(middle)? < number { low = middle } else { high = middle - 1 }
        }
        let start = low * BLOCK_BYTES;
        let block = text.read(start..bytes.min(start + BLOCK_BYTES))?;
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
