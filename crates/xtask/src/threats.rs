//! Checks that every threat in SECURITY.md names a test or a fuzz target, and that each fuzz target is complete: listed, with inputs to begin from.

use std::fs;
use std::path::Path;

const DOCUMENT: &str = "SECURITY.md";
/// The first line of a table of threats.
const HEADING: &str = "| threat | defence | test |";
/// Begins the part of a cell that names fuzz targets in backticks.
const FUZZ: &str = "fuzz";

pub fn check(workspace: &Path) -> Vec<String> {
    let text = fs::read_to_string(workspace.join(DOCUMENT)).unwrap_or_default();
    let targets = targets(workspace);
    let mut complaints = unproven(&text);
    if !text.contains(HEADING) {
        complaints.push(format!("{DOCUMENT}: there is no table `{HEADING}`"));
    }
    let unknown = fuzz_targets(&text).into_iter().filter(|name| !targets.contains(name));
    complaints.extend(unknown.map(|name| format!("{DOCUMENT}: there is no fuzz target `{name}`")));
    let read = |file: &str| fs::read_to_string(workspace.join(file)).unwrap_or_default();
    let (manifest, list, readme) = (read("fuzz/Cargo.toml"), read("fuzz/src/targets/mod.rs"), read("fuzz/README.md"));
    for name in &targets {
        let has_inputs = fs::read_dir(workspace.join("fuzz/corpus").join(name)).is_ok_and(|mut inputs| inputs.next().is_some());
        for (is_fine, what) in [
            (manifest.contains(&format!("name = \"{name}\"")), "is not in fuzz/Cargo.toml"),
            (list.contains(&format!("    {name},\n")), "is not in fuzz/src/targets/mod.rs"),
            (readme.contains(&format!("`{name}`")), "is not in fuzz/README.md"),
            (has_inputs, "has no inputs in fuzz/corpus"),
        ] {
            if !is_fine {
                complaints.push(format!("fuzz/src/targets/{name}.rs {what}"));
            }
        }
    }
    complaints
}

fn targets(workspace: &Path) -> Vec<String> {
    let files = fs::read_dir(workspace.join("fuzz/src/targets")).into_iter().flatten().flatten();
    files.filter_map(|file| Some(file.path().file_stem()?.to_str()?.to_owned())).filter(|name| name != "mod").collect()
}

/// The cells with the tests, of all tables of threats.
fn test_cells(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut is_inside = false;
    text.lines().filter_map(move |line| {
        is_inside = line == HEADING || (is_inside && line.starts_with('|'));
        let row = line.trim_matches(['|', ' ']);
        let is_row = is_inside && line != HEADING && !line.starts_with("|---");
        is_row.then(|| (row, line.trim_end_matches(['|', ' ']).rsplit_once("| ").map_or("", |(_, tests)| tests)))
    })
}

fn unproven(text: &str) -> Vec<String> {
    let names_test = |tests: &str| tests.contains(".rs") || tests.starts_with(FUZZ);
    let unproven = test_cells(text).filter(|(row, tests)| row.split(" | ").count() < 3 || !names_test(tests));
    unproven.map(|(row, _)| format!("{DOCUMENT}: a threat without a test: {}", row.chars().take(80).collect::<String>())).collect()
}

/// The names in backticks after the word that introduces them.
fn fuzz_targets(text: &str) -> Vec<String> {
    let named = test_cells(text).filter_map(|(_, tests)| tests.split_once(FUZZ)).map(|(_, names)| names);
    named.flat_map(|names| names.split('`').skip(1).step_by(2)).filter(|name| !name.contains('/')).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threats_without_tests_and_unknown_targets_are_found() {
        let text = format!("{HEADING}\n|---|---|---|\n| a | b | `c/d.rs::e`, fuzz `f`, `g` |\n| h | i | |\n| j | k |\n\n| l | m | |\n");
        assert_eq!(unproven(&text).len(), 2);
        assert_eq!(fuzz_targets(&text), ["f", "g"]);
    }
}
