//! Lists phrases that make comments hard to understand. It only prints them, and never fails.

use std::fs;
use std::path::PathBuf;

/// Phrases, and what to write instead.
const PHRASES: [(&str, &str); 8] = [
    ("whoever", "name the subject: the caller, the client, the server"),
    ("goes on from", "continues from"),
    ("Absent: ", "If omitted, "),
    ("is told", "receives, is notified"),
    ("nobody's", "say who may not"),
    ("what is kept", "what is stored"),
    ("leaves a heap", "produces a heap"),
    ("comes to its turn", "gets its turn"),
];

/// `file:line: "phrase": suggestion`, for comments only.
pub fn suggestions(files: &[PathBuf]) -> Vec<String> {
    files
        .iter()
        .flat_map(|file| {
            let text = fs::read_to_string(file).unwrap_or_default();
            let comments = text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("//"));
            let found = comments.flat_map(|(number, line)| {
                let phrases = PHRASES.iter().filter(move |(phrase, _)| line.contains(phrase));
                phrases.map(move |(phrase, instead)| (number + 1, *phrase, *instead))
            });
            found.map(|(number, phrase, instead)| format!("{}:{number}: \"{phrase}\": {instead}", file.display())).collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_comments_are_checked() {
        let folder = std::env::temp_dir().join(format!("wording-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("a.rs");
        fs::write(&file, format!("// {} asks\nlet a = \"{}\";\n", "whoever", "whoever")).expect("a file");
        assert_eq!(suggestions(&[file]).len(), 1);
        fs::remove_dir_all(folder).expect("removed");
    }
}
