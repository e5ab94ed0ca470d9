//! Checks that what documents name exists: every test (`path/file.rs::test`, relative to `crates/`), and every path in the table of rules of
//! ARCHITECTURE.md.

use std::fs;
use std::path::Path;

/// The documents whose claims name tests.
const DOCUMENTS: [&str; 3] = ["ARCHITECTURE.md", "SPECIFICATION.md", "SECURITY.md"];

/// The document and the heading of the table that names the file of each rule.
const RULES: (&str, &str) = ("ARCHITECTURE.md", "## Where rules are");

pub fn check(workspace: &Path) -> Vec<String> {
    let mut missing = missing_tests(workspace);
    missing.extend(missing_rules(workspace));
    missing
}

fn missing_tests(workspace: &Path) -> Vec<String> {
    DOCUMENTS
        .iter()
        .flat_map(|document| {
            let text = fs::read_to_string(workspace.join(document)).unwrap_or_default();
            let missing = named_tests(&text).into_iter().filter(|(file, test)| !exists(workspace, file, test));
            missing.map(|(file, test)| format!("{document}: there is no `{file}::{test}`")).collect::<Vec<_>>()
        })
        .collect()
}

fn missing_rules(workspace: &Path) -> Vec<String> {
    let (document, heading) = RULES;
    let text = fs::read_to_string(workspace.join(document)).unwrap_or_default();
    let paths = rule_paths(&text, heading);
    if paths.is_empty() {
        return vec![format!("{document}: there is no table under `{heading}`")];
    }
    // Documents are not in a crate.
    let is_there = |path: &str| ["crates", ""].iter().any(|folder| workspace.join(folder).join(path).exists());
    paths.into_iter().filter(|path| !is_there(path)).map(|path| format!("{document}: there is no `{path}`")).collect()
}

/// The paths in backticks in the table under this heading.
fn rule_paths<'a>(text: &'a str, heading: &str) -> Vec<&'a str> {
    let section = text.lines().skip_while(|line| *line != heading).skip(1).take_while(|line| !line.starts_with("## "));
    let rows = section.filter(|line| line.starts_with('|'));
    rows.flat_map(|row| row.split('`').skip(1).step_by(2)).filter(|quoted| quoted.contains('/')).collect()
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
    fn paths_are_found_in_the_table_of_rules() {
        let text = "`a/a.rs`\n## Rules\n`b/b.rs`\n| `c/c.rs` (`name`) | `d/`, `e.rs` |\n## Other\n| `f/f.rs` |";
        assert_eq!(rule_paths(text, "## Rules"), ["c/c.rs", "d/"]);
        assert!(rule_paths(text, "## None").is_empty());
    }

    #[test]
    fn tests_are_found_in_backticks() {
        let text = "**A1.** It holds. — `store/tests/a.rs::it_holds`, `store/tests/b.rs`, `cargo test a::b`";
        assert_eq!(named_tests(text), [("store/tests/a.rs".to_owned(), "it_holds".to_owned())]);
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        assert!(exists(&workspace, "xtask/src/references.rs", "tests_are_found_in_backticks"));
        assert!(!exists(&workspace, "xtask/src/references.rs", &["tests_are_", "found_in_back"].concat()), "a part of a name is none");
    }
}
