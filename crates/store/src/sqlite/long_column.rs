//! A column with long texts, read in parts: a part costs what it holds, however long the text is.

use crate::records::TextPart;
use rusqlite::{Connection, MAIN_DB};

#[derive(Debug, Clone, Copy)]
pub struct LongColumn {
    pub table: &'static str,
    pub column: &'static str,
}

impl LongColumn {
    /// A part of the text in this row, which must not be null. A character that the part would split is left out.
    pub fn part(self, db: &Connection, row: i64, part: TextPart) -> rusqlite::Result<String> {
        let text = db.blob_open(MAIN_DB, self.table, self.column, row, true)?;
        let offset = usize::try_from(part.offset).unwrap_or(usize::MAX).min(text.len());
        let mut bytes = vec![0; part.bytes_max.min(text.len() - offset)];
        text.read_at_exact(&mut bytes, offset)?;
        match String::from_utf8(bytes) {
            Ok(text) => Ok(text),
            Err(error) if error.utf8_error().error_len().is_none() => {
                let (whole, mut bytes) = (error.utf8_error().valid_up_to(), error.into_bytes());
                bytes.truncate(whole);
                String::from_utf8(bytes).map_err(|error| rusqlite::Error::Utf8Error(0, error.utf8_error()))
            }
            Err(error) => Err(rusqlite::Error::Utf8Error(0, error.utf8_error())),
        }
    }
}
