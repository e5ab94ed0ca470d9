//! Type stripping: what comes out has no types left, and in blank mode every line and column is the author's.

use heapstead_javascript::{Goal, as_object_literal, could_be_typescript, strip_types};

pub fn run(input: (bool, &str)) {
    let (is_module, code) = input;
    let _ = (as_object_literal(code), could_be_typescript(code));
    let goal = if is_module { Goal::Module } else { Goal::Either };
    match strip_types(code, goal) {
        Ok(stripped) if stripped.segments.is_none() => assert_eq!(stripped.code.lines().count(), code.lines().count()),
        Ok(stripped) => assert_eq!(stripped.segments.map_or(0, |segments| segments.len() % 4), 0),
        Err(error) => assert!(error.line >= 1 && error.column >= 1),
    }
}
