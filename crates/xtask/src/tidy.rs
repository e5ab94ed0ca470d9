//! The borders between crates, and a few habits that a machine can check.

use std::fs;
use std::path::{Path, PathBuf};

/// Crate, and the dependencies it must not have.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("types", &["tokio", "rustix", "libc", "v8", "heapstead-"]),
    ("wire", &["tokio", "v8", "axum", "heapstead-worker", "heapstead-engine"]),
    ("worker", &["tokio", "axum", "heapstead-engine", "heapstead-store"]),
    ("engine", &["v8", "axum", "rmcp", "rusqlite", "heapstead-worker", "heapstead-store"]),
    ("store", &["v8", "axum", "rmcp", "heapstead-engine", "heapstead-worker"]),
    ("catalog", &["tokio", "v8", "axum", "rmcp", "heapstead-"]),
    ("context", &["v8", "axum", "heapstead-"]),
    ("service", &["v8", "axum", "rmcp", "rusqlite", "object_store", "heapstead-worker"]),
    ("server", &["v8", "rusqlite", "object_store", "heapstead-worker"]),
];

const LINES_MAX: usize = 700;

/// All that is out of order.
pub fn check(workspace: &Path) -> Result<(), Vec<String>> {
    let mut complaints = Vec::new();
    for (name, forbidden) in FORBIDDEN {
        complaints.extend(dependencies(workspace, name).into_iter().filter_map(|dependency| {
            let is_forbidden =
                forbidden.iter().any(|prefix| dependency == *prefix || (prefix.ends_with('-') && dependency.starts_with(prefix)));
            is_forbidden.then(|| format!("crates/{name} may not depend on {dependency}"))
        }));
    }
    let mut files = Vec::new();
    sources(&workspace.join("crates"), &mut files);
    for file in files {
        complaints.extend(about(&file, &fs::read_to_string(&file).unwrap_or_default()));
    }
    if complaints.is_empty() { Ok(()) } else { Err(complaints) }
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

/// The first line of a file says what it is for; no file grows past one idea; nothing is left for later.
fn about(file: &Path, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let first = text.lines().next().unwrap_or_default();
    if !(first.starts_with("//! ") || first.starts_with("// ")) {
        complaints.push(format!("{}: the first line does not say what the file is for", file.display()));
    }
    if text.lines().count() > LINES_MAX {
        complaints.push(format!("{}: more than {LINES_MAX} lines", file.display()));
    }
    for mark in [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("#[ig", "nore")] {
        if text.contains(mark) {
            complaints.push(format!("{}: {mark}", file.display()));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_is_tidy() {
        assert_eq!(check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")), Ok(()));
    }

    #[test]
    fn what_is_out_of_order_is_found() {
        assert_eq!(about(Path::new("x.rs"), "fn main() {}").len(), 1);
        assert_eq!(about(Path::new("x.rs"), &format!("//! Fine.\n// {} later", concat!("TO", "DO"))).len(), 1);
        assert_eq!(about(Path::new("x.js"), "// Fine.\n"), Vec::<String>::new());
    }
}
