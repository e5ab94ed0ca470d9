//! Checks that every test that a document names exists: `path/file.rs::test`, relative to `crates/`.

use std::fs;
use std::path::Path;

/// The documents whose claims name tests.
const DOCUMENTS: [&str; 3] = ["ARCHITECTURE.md", "SPECIFICATION.md", "SECURITY.md"];

pub fn check(workspace: &Path) -> Vec<String> {
    DOCUMENTS
        .iter()
        .flat_map(|document| {
            let text = fs::read_to_string(workspace.join(document)).unwrap_or_default();
            let missing = named_tests(&text).into_iter().filter(|(file, test)| !exists(workspace, file, test));
            missing.map(|(file, test)| format!("{document}: there is no `{file}::{test}`")).collect::<Vec<_>>()
        })
        .collect()
}

fn exists(workspace: &Path, file: &str, test: &str) -> bool {
    let source = fs::read_to_string(workspace.join("crates").join(file)).unwrap_or_default();
    let is_word = |at: usize| !source[at + test.len()..].starts_with(|next: char| next.is_alphanumeric() || next == '_');
    source.match_indices(test).any(|(at, _)| is_word(at))
}

/// Everything in backticks that has the form `dir/file.rs::name`.
fn named_tests(text: &str) -> Vec<(String, String)> {
    let quoted = text.split('`').skip(1).step_by(2);
    let named = quoted.filter_map(|quoted| quoted.split_once("::")).filter(|(file, _)| file.ends_with(".rs") && file.contains('/'));
    named.map(|(file, test)| (file.to_owned(), test.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_found_in_backticks() {
        let text = "**A1.** It holds. — `store/tests/a.rs::it_holds`, `store/tests/b.rs`, `cargo test a::b`";
        assert_eq!(named_tests(text), [("store/tests/a.rs".to_owned(), "it_holds".to_owned())]);
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        assert!(exists(&workspace, "xtask/src/references.rs", "tests_are_found_in_backticks"));
        assert!(!exists(&workspace, "xtask/src/references.rs", &["tests_are_", "found_in_back"].concat()), "a part of a name is none");
    }
}
