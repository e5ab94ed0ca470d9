//! Checks which dependencies each crate may have, where SQL is, and a few style rules.

use crate::{references, threats};
use std::fs;
use std::path::{Path, PathBuf};

/// Crates and the dependencies they must not have.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("types", &["tokio", "rustix", "libc", "v8", "heapstead-"]),
    ("aead", &["tokio", "v8", "axum", "heapstead-"]),
    ("javascript", &["tokio", "v8", "axum", "heapstead-"]),
    ("wire", &["tokio", "v8", "axum", "heapstead-worker", "heapstead-engine"]),
    ("worker", &["tokio", "axum", "heapstead-engine", "heapstead-store"]),
    ("engine", &["v8", "axum", "rmcp", "rusqlite", "heapstead-worker", "heapstead-store"]),
    ("store", &["v8", "axum", "rmcp", "heapstead-engine", "heapstead-worker"]),
    (
        "catalog",
        &["tokio", "v8", "axum", "rmcp", "heapstead-types", "heapstead-store", "heapstead-service", "heapstead-engine", "heapstead-worker"],
    ),
    ("context", &["v8", "axum", "heapstead-types", "heapstead-store", "heapstead-service", "heapstead-engine"]),
    ("sqlite", &["axum", "v8", "heapstead-"]),
    ("service", &["v8", "axum", "rmcp", "rusqlite", "object_store", "heapstead-worker"]),
    ("server", &["v8", "rusqlite", "object_store", "heapstead-worker"]),
];

/// The only places that use SQLite, besides tests and benchmarks.
const SQLITE_PLACES: [&str; 3] = ["crates/sqlite/src", "crates/store/src/sqlite", "crates/context/src/store/sqlite"];

/// A longer file has to say why in its header: "long because".
const LINES_MAX: usize = 500;
/// The same for functions.
const FUNCTION_LINES_MAX: usize = 80;

/// Returns every violation.
pub fn check(workspace: &Path) -> Result<(), Vec<String>> {
    let mut complaints = Vec::new();
    for (name, forbidden) in FORBIDDEN {
        complaints.extend(dependencies(workspace, name).into_iter().filter_map(|dependency| {
            let is_forbidden =
                forbidden.iter().any(|prefix| dependency == *prefix || (prefix.ends_with('-') && dependency.starts_with(prefix)));
            is_forbidden.then(|| format!("crates/{name} may not depend on {dependency}"))
        }));
    }
    complaints.extend(references::check(workspace));
    complaints.extend(threats::check(workspace));
    for file in files(workspace) {
        let text = fs::read_to_string(&file).unwrap_or_default();
        complaints.extend(about(&file, &text));
        if uses_sqlite(&text) && !may_use_sqlite(file.strip_prefix(workspace).unwrap_or(&file)) {
            complaints.push(format!("{}: SQLite may be used only in {}", file.display(), SQLITE_PLACES.join(", ")));
        }
    }
    if complaints.is_empty() { Ok(()) } else { Err(complaints) }
}

fn uses_sqlite(text: &str) -> bool {
    [concat!("use rus", "qlite"), concat!("rus", "qlite::")].iter().any(|mark| text.contains(mark))
}

/// The path is relative to the workspace.
fn may_use_sqlite(file: &Path) -> bool {
    let is_test_or_bench = file.starts_with("crates/bench") || file.components().any(|part| part.as_os_str() == "tests");
    is_test_or_bench || SQLITE_PLACES.iter().any(|place| file.starts_with(place))
}

/// All source files.
pub fn files(workspace: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in ["crates", "fuzz/src"] {
        sources(&workspace.join(folder), &mut files);
    }
    files
}

fn dependencies(workspace: &Path, name: &str) -> Vec<String> {
    let manifest = fs::read_to_string(workspace.join("crates").join(name).join("Cargo.toml")).unwrap_or_default();
    let manifest: toml::Table = manifest.parse().unwrap_or_default();
    let table = manifest.get("dependencies").and_then(toml::Value::as_table);
    table.map(|table| table.keys().cloned().collect()).unwrap_or_default()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.extension().and_then(|ending| ending.to_str()) {
            _ if path.is_dir() => sources(&path, found),
            Some("rs" | "js" | "cc") => found.push(path),
            _ => {}
        }
    }
}

/// Checks that the first line of a file states its purpose, that the file is not too long, and that it has no open to-do marks or ignored
/// tests.
fn about(file: &Path, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let first = text.lines().next().unwrap_or_default();
    if !(first.starts_with("//! ") || first.starts_with("// ")) {
        complaints.push(format!("{}: the first line does not say what the file is for", file.display()));
    }
    let has_reason = text.lines().take_while(|line| line.starts_with("//")).any(|line| line.contains("long because"));
    if text.lines().count() > LINES_MAX && !has_reason {
        complaints.push(format!("{}: more than {LINES_MAX} lines", file.display()));
    }
    if !has_reason && file.extension().is_some_and(|ending| ending == "rs") {
        let long = long_functions(text).into_iter();
        complaints.extend(long.map(|name| format!("{}: `{name}` has more than {FUNCTION_LINES_MAX} lines", file.display())));
    }
    for mark in [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("#[ig", "nore")] {
        if text.contains(mark) {
            complaints.push(format!("{}: {mark}", file.display()));
        }
    }
    complaints
}

/// The names of functions that are too long. Formatted code closes a function with a brace in the column of its first line.
fn long_functions(text: &str) -> Vec<String> {
    let lines: Vec<_> = text.lines().collect();
    let mut long = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        // A declaration without a body ends with a semicolon.
        let is_end = |rest: &str| rest.starts_with('}') || (rest.starts_with(')') && rest.ends_with(';'));
        let end = lines[start..].iter().position(|line| line.strip_prefix(indent).is_some_and(is_end));
        if line.ends_with(';') {
            continue;
        }
        if end.is_some_and(|end| end > FUNCTION_LINES_MAX) {
            long.push(name.to_owned());
        }
    }
    long
}

fn function_name(line: &str) -> Option<&str> {
    let is_modifier = |word: &&str| matches!(*word, "pub" | "pub(crate)" | "pub(super)" | "async" | "const" | "unsafe");
    let mut words = line.split_whitespace().skip_while(is_modifier);
    (words.next()? == "fn").then(|| words.next())?.and_then(|name| name.split(['(', '<']).next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_is_tidy() {
        assert_eq!(check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")), Ok(()));
    }

    #[test]
    fn long_functions_are_found() {
        let body = "    x();\n".repeat(81);
        assert_eq!(long_functions(&format!("pub async fn a() {{\n{body}}}\nfn b() {{}}\n")), ["a"]);
        assert!(long_functions(&format!("trait T {{\n    fn c();\n{body}}}\n")).is_empty());
    }

    #[test]
    fn sqlite_is_found_outside_its_places() {
        let (import, path) = (concat!("use rus", "qlite::Row;"), concat!("rus", "qlite::Error"));
        assert!(uses_sqlite(import) && uses_sqlite(path) && !uses_sqlite("use heapstead_sqlite::Writer;"));
        for (file, may) in [
            ("crates/store/src/sqlite/tags.rs", true),
            ("crates/context/tests/stores/sqlite.rs", true),
            ("crates/bench/src/server/fill.rs", true),
            ("crates/store/src/sqlite_helpers.rs", false),
            ("crates/service/src/service.rs", false),
        ] {
            assert_eq!(may_use_sqlite(Path::new(file)), may, "{file}");
        }
    }

    #[test]
    fn violations_are_found() {
        assert_eq!(about(Path::new("x.rs"), "fn main() {}").len(), 1);
        assert_eq!(about(Path::new("x.rs"), &format!("//! Fine.\n// {} later", concat!("TO", "DO"))).len(), 1);
        assert_eq!(about(Path::new("x.js"), "// Fine.\n"), Vec::<String>::new());
    }
}
