//! The text of `summary_before_window`: paragraphs that each count their calls, so that two paragraphs can be merged.
//!
//! ```text
//! Summary of 7 earlier tool calls (2026-11-16T02:21:44.120Z to 2026-11-16T02:30:00.000Z):
//!   - grep: called 6 times
//!   - read_file: called 1 time
//!   - grep result: Found 3 files.
//! ```

use crate::Timestamp;
use crate::limits::{NOTED_RESULTS_MAX, SUMMARY_BYTES_MAX, SUMMARY_TOOLS_MAX, TOOL_NAME_BYTES_MAX};
use crate::record::ToolCall;
use crate::text::{clean, cut_bytes, result_summary_of_text};
use std::fmt;

/// Name under which tools are counted when there are too many to name.
const OTHER_TOOLS: &str = "other tools";
/// Maximum size of a summariser's text for one paragraph.
const SUMMARISER_BYTES_MAX: usize = 2 * 1024;

/// The paragraphs of one conversation's summary, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Counted(Paragraph),
    /// Text that was not generated here: of a summariser, or in another format.
    External(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paragraph {
    pub calls: u64,
    first: String,
    last: String,
    /// In the order of their first call. The counts add up to `calls`, unless a summariser's text replaced them.
    tools: Vec<(String, u64)>,
    notes: Vec<String>,
}

impl Summary {
    pub fn parse(text: &str) -> Self {
        let part = |text: &str| Paragraph::parse(text).map_or_else(|| Part::External(text.to_owned()), Part::Counted);
        Self(text.split("\n\n").filter(|text| !text.trim().is_empty()).map(part).collect())
    }

    /// Number of calls that it covers.
    pub fn calls(&self) -> u64 {
        self.counted().map(|paragraph| paragraph.calls).sum()
    }

    pub fn push(&mut self, paragraph: Paragraph) {
        self.0.push(Part::Counted(paragraph));
    }

    /// Replaces the lines of the last paragraph with a summariser's text. Returns false if that paragraph covers different calls.
    pub fn replace_last(&mut self, calls: u64, text: &str) -> bool {
        match self.0.last_mut() {
            Some(Part::Counted(last)) if last.calls == calls => {
                last.tools.clear();
                last.notes = summariser_lines(text);
                true
            }
            _ => false,
        }
    }

    /// Renders the text within the limit. Merges the two oldest paragraphs until it fits, and then drops results and tool names.
    pub fn into_bounded_text(mut self) -> String {
        loop {
            let text = self.to_string();
            if text.len() <= SUMMARY_BYTES_MAX || !self.shrink() {
                return text;
            }
        }
    }

    fn counted(&self) -> impl Iterator<Item = &Paragraph> {
        self.0.iter().filter_map(|part| match part {
            Part::Counted(paragraph) => Some(paragraph),
            Part::External(_) => None,
        })
    }

    fn shrink(&mut self) -> bool {
        let counted: Vec<usize> = (0..self.0.len()).filter(|index| matches!(self.0[*index], Part::Counted(_))).collect();
        if let [first, second, ..] = *counted {
            let Part::Counted(newer) = self.0.remove(second) else { return false };
            if let Part::Counted(older) = &mut self.0[first] {
                older.join(newer);
            }
            return true;
        }
        if let Some(external) = self.0.iter().position(|part| matches!(part, Part::External(_))) {
            self.0.remove(external);
            return true;
        }
        match self.0.first_mut() {
            Some(Part::Counted(only)) => only.notes.pop().is_some() || only.drop_name(),
            _ => false,
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n\n")?;
            }
            match part {
                Part::Counted(paragraph) => fmt::Display::fmt(paragraph, f)?,
                Part::External(text) => f.write_str(text)?,
            }
        }
        Ok(())
    }
}

impl Paragraph {
    /// `None` if there are no calls.
    pub fn of(calls: &[ToolCall]) -> Option<Self> {
        let times = || calls.iter().map(|call| call.called_at);
        let (first, last) = (times().min()?, times().max()?);
        let mut paragraph = Self { calls: 0, first: first.to_string(), last: last.to_string(), tools: Vec::new(), notes: Vec::new() };
        for call in calls {
            let tool = cut_bytes(&clean(&call.tool), TOOL_NAME_BYTES_MAX);
            let result = result_summary_of_text(&call.result_summary);
            if paragraph.notes.len() < NOTED_RESULTS_MAX && !result.is_empty() {
                paragraph.notes.push(format!("{tool} result: {result}"));
            }
            paragraph.calls += 1;
            paragraph.count(tool, 1);
        }
        Some(paragraph)
    }

    fn count(&mut self, tool: String, calls: u64) {
        let known = self.tools.iter().position(|(known, _)| *known == tool);
        let place = known.or_else(|| {
            let full = self.tools.len() >= SUMMARY_TOOLS_MAX;
            full.then(|| self.tools.iter().position(|(known, _)| known == OTHER_TOOLS)).flatten()
        });
        match place {
            Some(place) => self.tools[place].1 += calls,
            None if self.tools.len() >= SUMMARY_TOOLS_MAX => self.tools.push((OTHER_TOOLS.to_owned(), calls)),
            None => self.tools.push((tool, calls)),
        }
    }

    /// Merges the following paragraph into this one.
    fn join(&mut self, mut newer: Self) {
        self.count_unnamed();
        newer.count_unnamed();
        self.calls += newer.calls;
        for (tool, calls) in newer.tools {
            self.count(tool, calls);
        }
        // A run that ended late may have been called before calls that are already folded.
        if is_before(&newer.first, &self.first) {
            self.first = newer.first;
        }
        if !is_before(&newer.last, &self.last) {
            self.last = newer.last;
        }
        self.notes.extend(newer.notes);
        self.notes.truncate(NOTED_RESULTS_MAX);
    }

    /// Counts the calls whose tools a summariser's text no longer names.
    fn count_unnamed(&mut self) {
        let named: u64 = self.tools.iter().map(|(_, calls)| calls).sum();
        if named < self.calls {
            self.count(OTHER_TOOLS.to_owned(), self.calls - named);
        }
    }

    /// Removes one tool name, counting its calls under other tools.
    fn drop_name(&mut self) -> bool {
        let Some(last) = self.tools.iter().rposition(|(tool, _)| tool != OTHER_TOOLS) else { return false };
        let (_, calls) = self.tools.remove(last);
        match self.tools.iter_mut().find(|(tool, _)| tool == OTHER_TOOLS) {
            Some((_, counted)) => *counted += calls,
            None => self.tools.push((OTHER_TOOLS.to_owned(), calls)),
        }
        true
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let heading = lines.next()?.strip_prefix("Summary of ")?.strip_suffix("):")?;
        let (calls, span) = heading.split_once(" earlier tool calls (")?;
        let (first, last) = span.split_once(" to ")?;
        // The sum of all paragraphs must not overflow.
        let calls = calls.parse::<u32>().ok()?.into();
        let mut paragraph = Self { calls, first: first.to_owned(), last: last.to_owned(), tools: Vec::new(), notes: Vec::new() };
        let mut named = 0;
        for line in lines {
            let line = line.strip_prefix("  - ")?;
            // Counts come first and end where they add up to the total, because a result may look like a count.
            match parse_count(line) {
                Some((tool, calls)) if paragraph.notes.is_empty() && calls <= paragraph.calls - named => {
                    named += calls;
                    paragraph.tools.push((tool.to_owned(), calls));
                }
                _ => paragraph.notes.push(line.to_owned()),
            }
        }
        Some(paragraph)
    }
}

impl fmt::Display for Paragraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Summary of {} earlier tool calls ({} to {}):", self.calls, self.first, self.last)?;
        for (tool, calls) in &self.tools {
            write!(f, "\n  - {tool}: called {calls} time{}", if *calls == 1 { "" } else { "s" })?;
        }
        for note in &self.notes {
            f.write_str("\n  - ")?;
            f.write_str(note)?;
        }
        Ok(())
    }
}

/// A malformed time, written by another program, is not before any other.
fn is_before(time: &str, other: &str) -> bool {
    matches!((time.parse::<Timestamp>(), other.parse::<Timestamp>()), (Ok(time), Ok(other)) if time < other)
}

fn parse_count(line: &str) -> Option<(&str, u64)> {
    let (tool, count) = line.rsplit_once(": called ")?;
    let (calls, unit) = count.split_once(' ')?;
    let calls = calls.parse().ok().filter(|calls| *calls > 0)?;
    (unit == if calls == 1 { "time" } else { "times" }).then_some((tool, calls))
}

fn summariser_lines(text: &str) -> Vec<String> {
    let text = cut_bytes(text, SUMMARISER_BYTES_MAX);
    text.lines().map(|line| clean(line.trim_start().trim_start_matches("- "))).filter(|line| !line.is_empty()).collect()
}
