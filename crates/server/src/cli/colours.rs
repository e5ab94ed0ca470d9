//! Terminal colours, only on a terminal that supports them.

use std::io::IsTerminal;

#[derive(Debug, Clone, Copy)]
pub struct Colours {
    on: bool,
}

impl Colours {
    /// Colours for a stream if it is a terminal and <https://no-color.org> is not set.
    pub fn of(stream: &impl IsTerminal) -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { on: stream.is_terminal() && !unwanted }
    }

    #[cfg(test)]
    pub fn off() -> Self {
        Self { on: false }
    }

    pub fn red(self, text: &str) -> String {
        self.painted("31", text)
    }

    pub fn green(self, text: &str) -> String {
        self.painted("32", text)
    }

    pub fn yellow(self, text: &str) -> String {
        self.painted("33", text)
    }

    pub fn cyan(self, text: &str) -> String {
        self.painted("36", text)
    }

    pub fn dim(self, text: &str) -> String {
        self.painted("2", text)
    }

    fn painted(self, code: &str, text: &str) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_terminal_text_is_plain() {
        let file = std::fs::File::open("/dev/null").expect("a file");
        assert_eq!(Colours::of(&file).red("x"), "x");
        assert_eq!(Colours { on: true }.red("x"), "\x1b[31mx\x1b[0m");
    }
}
