//! Catalogs: any files are a catalog whose descriptions are within their bounds and whose bundle is JavaScript, or a refusal.

use heapstead_catalog::fuzzing::catalog;
use heapstead_catalog::limits::{DESCRIPTION_CHARS_MAX, NAME_CHARS_MAX, SIGNATURE_CHARS_MAX};
use std::collections::BTreeMap;

/// Whether the entry file is TypeScript, the manifest (or a good one), another file, and the entry file.
type Input<'a> = (bool, Option<&'a [u8]>, Option<&'a str>, &'a str);

pub fn run(input: Input<'_>) {
    let (is_typescript, manifest, other, entry_source) = input;
    let manifest = manifest.unwrap_or(br#"{"name":"fuzzed","version":"1"}"#);
    let entry = if is_typescript { "index.ts" } else { "index.js" };
    let mut files = BTreeMap::from([("catalog.json".to_owned(), manifest.to_vec()), (entry.to_owned(), entry_source.into())]);
    if let Some(other) = other {
        files.insert("other.js".to_owned(), other.into());
    }
    let Ok(catalog) = catalog(files) else { return };
    assert!(catalog.name.len() <= NAME_CHARS_MAX && !catalog.entities().is_empty());
    for entity in catalog.entities() {
        assert!(entity.signature.chars().count() <= SIGNATURE_CHARS_MAX);
        assert!(entity.description.chars().count() <= DESCRIPTION_CHARS_MAX);
    }
    assert!(heapstead_javascript::minify_expression(catalog.bundle()).is_ok(), "the bundle is an expression: {}", catalog.bundle());
}
