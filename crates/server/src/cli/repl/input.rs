//! The meaning of a line typed at the first prompt: code, or a command that begins with a dot.

pub const HELP: &str = "\
.undo [N]     undo the last turn, or the last N: the state is that of before
.fork [NAME]  continue in a new session with the same state; this one stays as it is
.save FILE    write the code of the session to a file, without what was undone
.load FILE    run a file
.heap         show the key of the heap that the next line starts from
.help         this list
.exit         exit, like Ctrl-D

Every line that completes is a turn of the session. `_` is the last result.
An incomplete line continues on the next one. Ctrl-C cancels a running line, or drops the line being typed.
Top-level `let`, `const`, `class` and `function` declarations persist, and may be declared again.";

#[derive(Debug, PartialEq, Eq)]
pub enum Input<'a> {
    Undo {
        turns: u32,
    },
    Fork {
        name: Option<&'a str>,
    },
    Save(&'a str),
    Load(&'a str),
    Heap,
    Help,
    Exit,
    /// A command, and what it needs.
    Incomplete(&'static str),
    Unknown(&'a str),
    Code,
}

impl<'a> Input<'a> {
    pub fn parse(line: &'a str) -> Self {
        let line = line.trim();
        // `.5` is a number.
        if !line.starts_with('.') || line[1..].starts_with(|first: char| first.is_ascii_digit()) {
            return Self::Code;
        }
        match line.split_once(char::is_whitespace).map_or((line, ""), |(command, rest)| (command, rest.trim())) {
            (".undo", "") => Self::Undo { turns: 1 },
            (".undo", turns) => match turns.parse() {
                Ok(turns @ 1..) => Self::Undo { turns },
                _ => Self::Incomplete(".undo takes a number of turns: .undo [N]"),
            },
            (".fork", name) => Self::Fork { name: Some(name).filter(|name| !name.is_empty()) },
            (".save", "") => Self::Incomplete(".save needs the name of a file: .save FILE"),
            (".save", file) => Self::Save(file),
            (".load", "") => Self::Incomplete(".load needs the name of a file: .load FILE"),
            (".load", file) => Self::Load(file),
            (".heap", "") => Self::Heap,
            (".help", "") => Self::Help,
            (".exit", "") => Self::Exit,
            _ => Self::Unknown(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_begin_with_a_dot_are_commands() {
        for (line, meaning) in [
            (".undo", Input::Undo { turns: 1 }),
            (" .undo  3 ", Input::Undo { turns: 3 }),
            (".undo 0", Input::Incomplete(".undo takes a number of turns: .undo [N]")),
            (".undo all", Input::Incomplete(".undo takes a number of turns: .undo [N]")),
            (".fork", Input::Fork { name: None }),
            (".fork an idea", Input::Fork { name: Some("an idea") }),
            (".save a.js", Input::Save("a.js")),
            (".load", Input::Incomplete(".load needs the name of a file: .load FILE")),
            (".exit now", Input::Unknown(".exit now")),
            (".5 + 1", Input::Code),
            ("a.undo", Input::Code),
        ] {
            assert_eq!(Input::parse(line), meaning, "{line:?}");
        }
    }
}
