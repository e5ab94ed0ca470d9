//! Questions between servers: a line is one question, written the same way, or none.

use heapstead_store::fuzzing::QUESTION_BYTES_MAX;
use heapstead_store::peers::Question;

pub fn run(line: &str) {
    let Some(question) = Question::parse(line) else { return };
    let written = format!("{question}\n");
    assert!(written.len() as u64 <= QUESTION_BYTES_MAX, "{written:?}");
    assert_eq!(Question::parse(&written), Some(question));
}
