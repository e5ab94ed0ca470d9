//! Input lines of the REPL: from a line editor with history on a terminal, else read plainly.

use heapstead_types::limits::SOURCE_BYTES_MAX;
use rustyline::error::ReadlineError;
use rustyline::{Config, DefaultEditor};
use std::fs::DirBuilder;
use std::io::{self, BufRead, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

const HISTORY_LINES_MAX: usize = 10_000;

pub enum Line {
    Text(String),
    /// Ctrl-C: the typed input is dropped.
    Interrupted,
    /// Ctrl-D, or the end of a script.
    End,
}

pub enum Lines {
    Terminal { editor: Box<DefaultEditor>, history: Option<PathBuf> },
    Script,
}

impl Lines {
    /// A line editor with a history file, if there is a place for one.
    pub fn of_terminal() -> rustyline::Result<Self> {
        let config = Config::builder().max_history_size(HISTORY_LINES_MAX)?.history_ignore_space(true).build();
        let mut editor = Box::new(DefaultEditor::with_config(config)?);
        let history = history_file();
        if let Some(file) = &history {
            // It does not exist at first.
            let _ = editor.load_history(file);
        }
        Ok(Self::Terminal { editor, history })
    }

    pub fn next(&mut self, prompt: &str) -> io::Result<Line> {
        match self {
            Self::Terminal { editor, .. } => match editor.readline(prompt) {
                Ok(text) => Ok(Line::Text(text)),
                Err(ReadlineError::Interrupted) => Ok(Line::Interrupted),
                Err(ReadlineError::Eof) => Ok(Line::End),
                Err(error) => Err(io::Error::other(error)),
            },
            Self::Script => next_of_script(),
        }
    }

    /// Adds a complete input to the history, for this session and later ones.
    pub fn remember(&mut self, input: &str) {
        if let Self::Terminal { editor, history } = self {
            let added = editor.add_history_entry(input).unwrap_or(false);
            // Saved immediately, so that a killed session keeps its history. Without a file, the history lasts for this session.
            if let (true, Some(file)) = (added, history) {
                let _ = editor.append_history(file);
            }
        }
    }
}

fn next_of_script() -> io::Result<Line> {
    let mut line = Vec::new();
    io::stdin().lock().take(SOURCE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line)?;
    if line.len() > SOURCE_BYTES_MAX {
        return Err(io::Error::other(format!("a line is longer than {SOURCE_BYTES_MAX} bytes, the maximum length of a source")));
    }
    if line.is_empty() {
        return Ok(Line::End);
    }
    String::from_utf8(line).map(|text| Line::Text(text.trim_end_matches(['\n', '\r']).to_owned())).map_err(io::Error::other)
}

/// In the XDG state folder; rustyline creates it readable by its owner only.
fn history_file() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    let folder = state.join("heapstead");
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
    Some(folder.join("repl_history"))
}
