//! Formats tables and units for people: aligned columns, sizes and times.

use super::colours::Colours;
use jiff::{SignedDuration, Timestamp};

pub struct Table {
    colours: Colours,
    rows: Vec<Vec<Cell>>,
}

/// Text, and its colour, which is applied once the column width is known.
pub struct Cell {
    text: String,
    paint: fn(Colours, &str) -> String,
}

impl Cell {
    pub fn painted(text: impl Into<String>, paint: fn(Colours, &str) -> String) -> Self {
        Self { text: text.into(), paint }
    }

    pub fn text(&self, colours: Colours) -> String {
        (self.paint)(colours, &self.text)
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::painted(text, |_, text| text.to_owned())
    }
}

impl Table {
    pub fn new<const N: usize>(colours: Colours, titles: [&str; N]) -> Self {
        Self { colours, rows: vec![titles.map(|title| Cell::painted(title, Colours::dim)).into()] }
    }

    pub fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        self.rows.push(cells.into());
    }

    /// All rows, each with its newline.
    pub fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.chars().count()).max();
        let widths: Vec<_> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
        let mut text = String::new();
        for row in &self.rows {
            for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let padding = width - cell.text.chars().count();
                text.push_str(&cell.text(self.colours));
                if at + 1 < row.len() {
                    text.extend(std::iter::repeat_n(' ', padding + 2));
                }
            }
            text.push('\n');
        }
        text
    }
}

/// For example 697459 → `681 KB`.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KB", bytes >> 10),
        1_048_576..1_073_741_824 => format!("{:.1} MB", bytes as f64 / f64::from(1 << 20)),
        _ => format!("{:.1} GB", bytes as f64 / f64::from(1 << 30)),
    }
}

/// For example `2026-11-15T21:38:49.925Z` → `2026-11-15 21:38:49`, in UTC as everywhere.
pub fn time(iso_8601: &str) -> String {
    iso_8601.get(..19).map_or_else(|| iso_8601.to_owned(), |seconds| seconds.replace('T', " "))
}

/// The duration, so far if it has not ended.
pub fn took(started_at: &str, completed_at: Option<&str>) -> String {
    let Ok(started) = started_at.parse::<Timestamp>() else { return String::new() };
    let ended = completed_at.and_then(|time| time.parse().ok()).unwrap_or_else(Timestamp::now);
    duration(ended.duration_since(started).max(SignedDuration::ZERO))
}

fn duration(took: SignedDuration) -> String {
    match took.as_secs() {
        0 => format!("{} ms", took.as_millis()),
        secs @ 1..60 => format!("{secs}.{} s", took.subsec_millis() / 100),
        secs @ 60..3600 => format!("{} min {} s", secs / 60, secs % 60),
        secs => format!("{} h {} min", secs / 3600, secs % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(Colours::off(), ["A", "LONG"]);
        table.row(["wide".into(), "é".into()]);
        table.row(["x".into(), "y".into()]);
        assert_eq!(table.text(), "A     LONG\nwide  é\nx     y\n");
    }

    #[test]
    fn units() {
        assert_eq!([0, 1023, 1024, 697_459, 1 << 20, 5 << 29].map(size), ["0 B", "1023 B", "1 KB", "681 KB", "1.0 MB", "2.5 GB"]);
        assert_eq!(time("2026-11-15T21:38:49.925Z"), "2026-11-15 21:38:49");
        let check = |ms, text| assert_eq!(duration(SignedDuration::from_millis(ms)), text);
        check(0, "0 ms");
        check(999, "999 ms");
        check(1_234, "1.2 s");
        check(61_000, "1 min 1 s");
        check(7_260_000, "2 h 1 min");
    }
}
