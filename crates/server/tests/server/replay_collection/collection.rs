//! A large collection of programs: the hostile cases, the texts in the tests of the engine, and the catalogs.

use heapstead_testkit::hostile::{Case, Form, Mode};
use std::path::{Path, PathBuf};

/// Of programs that may never end: those that wait for it can't be repeated, so it is short.
const TIMEOUT_SECS_MAX: u32 = 3;
const HEAP_MB: u32 = 64;

#[derive(Debug, Clone)]
pub struct Program {
    pub name: String,
    pub code: String,
    pub heap_mb: u32,
    pub timeout_secs: u32,
    /// V8 stores the address of a `DataView`'s memory with it, so the keys of heaps with one differ.
    pub leaves_addresses: bool,
}

pub fn all() -> Vec<Program> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut programs = hostile_cases(&root.join("tests/hostile"));
    programs.extend(files_of(&root.join("crates/engine/tests/behaviour"), "rs").iter().flat_map(texts));
    programs.extend(["statistics", "dates"].map(|catalog| catalog_program(&root.join("catalogs").join(catalog))));
    programs
}

fn hostile_cases(folder: &Path) -> Vec<Program> {
    let cases = Case::load_all(folder, Form::Small).expect("the cases");
    // Of those that never complete, most are stopped.
    let cases = cases.into_iter().filter(|case| case.file.mode != Mode::Stateless && (case.file.ends.may_complete() || case.is_sampled()));
    let of_case = |case: Case| {
        let limits = case.limits();
        let timeout_secs = if case.file.ends.may_complete() { limits.timeout_secs } else { TIMEOUT_SECS_MAX };
        Program { heap_mb: limits.heap_mb, timeout_secs, ..program(case.name, case.code) }
    };
    cases.map(of_case).collect()
}

/// Most texts in the tests of the engine are programs. The others fail, and that is repeated too.
fn texts(file: &PathBuf) -> Vec<Program> {
    let source = std::fs::read_to_string(file).expect("a test");
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let literals = literals(&source).into_iter().filter(|text| text.len() > 8).enumerate();
    literals.map(|(number, code)| program(format!("{name} {number}"), code)).collect()
}

fn program(name: String, code: String) -> Program {
    let leaves_addresses = code.contains("DataView");
    Program { name, code, heap_mb: HEAP_MB, timeout_secs: TIMEOUT_SECS_MAX, leaves_addresses }
}

/// All files of a catalog in one program: imports and exports are for the server, the rest is plain code.
fn catalog_program(folder: &Path) -> Program {
    let mut code = String::new();
    for file in [files_of(folder, "ts"), files_of(folder, "js")].concat() {
        let text = std::fs::read_to_string(&file).expect("a file of a catalog");
        let plain =
            text.lines().filter(|line| !line.starts_with("import ") && !line.starts_with("export {") && !line.starts_with("export *"));
        code.extend(plain.map(|line| format!("{}\n", line.strip_prefix("export ").unwrap_or(line))));
    }
    program(folder.display().to_string(), code + "Date.now() + Math.random()")
}

fn files_of(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|is| is == extension)).collect();
    files.sort();
    files
}

/// The plain string literals of Rust source.
fn literals(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    // Comments may have single quotation marks.
    let source: String = source.lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| format!("{line}\n")).collect();
    let mut rest = source.as_str();
    while let Some(start) = rest.find('"') {
        let mut text = String::new();
        let mut characters = rest[start + 1..].char_indices().peekable();
        let end = loop {
            match characters.next() {
                Some((at, '"')) => break start + 1 + at + 1,
                Some((_, '\\')) => match characters.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, '\n')) => while characters.next_if(|(_, c)| c.is_whitespace()).is_some() {},
                    Some((_, other)) => text.push(other),
                    None => return found,
                },
                Some((_, other)) => text.push(other),
                None => return found,
            }
        };
        found.push(text);
        rest = &rest[end..];
    }
    found
}
