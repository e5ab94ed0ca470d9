//! What one server asks another, as one line of text:
//!
//! ```text
//! cancel <execution>           ok when its worker is dead and its status is `cancelled`; `no` if it ended otherwise or does not run there
//! ended <execution>            ok when it has ended, or does not run there
//! lines <execution> <number>   the same, or as soon as its output has this line (the first is 1)
//! bytes <execution> <number>   the same, or as soon as its output is longer than this
//! turn <turn>                  ok when the turn is over, or is not held there
//! removal                      ok when the removal of a heap that is under way there is over
//! ```

use crate::records::TurnId;
use heapstead_types::ExecutionId;
use std::fmt;

/// The longest line: a word, an id and a number.
pub const LINE_BYTES_MAX: u64 = 128;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    Cancel(ExecutionId),
    Ended(ExecutionId),
    Line(ExecutionId, u64),
    Byte(ExecutionId, u64),
    TurnOver(TurnId),
    RemovalOver,
}

impl Question {
    /// None for a line that is not exactly one question.
    pub fn parse(line: &str) -> Option<Self> {
        let words: Vec<_> = line.strip_suffix('\n')?.split(' ').collect();
        Some(match words.as_slice() {
            ["cancel", id] => Self::Cancel(id.parse().ok()?),
            ["ended", id] => Self::Ended(id.parse().ok()?),
            ["removal"] => Self::RemovalOver,
            ["turn", id] => Self::TurnOver(id.parse().ok()?),
            ["lines", id, number] => Self::Line(id.parse().ok()?, number.parse().ok()?),
            ["bytes", id, number] => Self::Byte(id.parse().ok()?, number.parse().ok()?),
            _ => return None,
        })
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancel(id) => write!(f, "cancel {id}"),
            Self::Ended(id) => write!(f, "ended {id}"),
            Self::Line(id, number) => write!(f, "lines {id} {number}"),
            Self::Byte(id, number) => write!(f, "bytes {id} {number}"),
            Self::TurnOver(id) => write!(f, "turn {id}"),
            Self::RemovalOver => f.write_str("removal"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_parsed_as_they_are_written() {
        let id = ExecutionId::from_random([7; 16]);
        for question in [
            Question::Cancel(id.clone()),
            Question::Ended(id.clone()),
            Question::Line(id.clone(), 1),
            Question::Byte(id.clone(), u64::MAX),
            Question::TurnOver(TurnId::of_execution(&id)),
            Question::RemovalOver,
        ] {
            let line = format!("{question}\n");
            assert!(line.len() as u64 <= LINE_BYTES_MAX);
            assert_eq!(Question::parse(&line), Some(question));
        }
    }

    #[test]
    fn other_lines_are_not_questions() {
        let id = ExecutionId::from_random([7; 16]);
        for line in [
            String::new(),
            format!("cancel {id}"),
            format!("cancel {id} 1\n"),
            format!("removal {id}\n"),
            format!("lines {id}\n"),
            format!("lines {id} x\n"),
            format!("bytes {id} 1 2\n"),
            format!("sing {id}\n"),
            "cancel ../x\n".to_owned(),
            "turn ../x\n".to_owned(),
        ] {
            assert_eq!(Question::parse(&line), None, "{line:?}");
        }
    }
}
