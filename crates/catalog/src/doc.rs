//! Parses a doc comment: its summary and the tags `@param`, `@returns` and `@type`.
//!
//! ```text
//! Adds months to a date.            summary: the first paragraph
//!
//! More about it.
//! @param {Date} date where to begin
//! @param {number} [months=1] - how many
//! @returns {Date} the same day, or the month's last
//! ```

use crate::limits::{DESCRIPTION_CHARS_MAX, TYPE_CHARS_MAX};
use crate::source::{cut, one_line};

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Doc {
    pub summary: String,
    pub parameters: Vec<DocParameter>,
    pub returns: Option<String>,
    pub kind: Option<String>,
    /// `@private` or `@internal`: not part of the public API.
    pub is_private: bool,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct DocParameter {
    pub name: String,
    pub kind: Option<String>,
    pub text: String,
    pub optional: bool,
    pub default: Option<String>,
    pub rest: bool,
}

impl Doc {
    /// Parses the text between `/**` and `*/`.
    pub fn parse(comment: &str) -> Self {
        let lines = comment.lines().map(|line| {
            let line = line.trim();
            line.strip_prefix('*').map_or(line, str::trim_start)
        });
        let mut blocks: Vec<String> = vec![String::new()];
        for line in lines {
            if line.starts_with('@') {
                blocks.push(String::new());
            }
            if let Some(block) = blocks.last_mut() {
                block.push_str(line);
                block.push('\n');
            }
        }
        let mut doc = Self::default();
        for (index, block) in blocks.iter().enumerate() {
            match index {
                0 => doc.summary = first_paragraph(block),
                _ => doc.add_tag(block),
            }
        }
        doc
    }

    /// The documentation of the parameter with this name.
    pub fn parameter(&self, name: &str) -> Option<&DocParameter> {
        self.parameters.iter().find(|parameter| parameter.name == name)
    }

    fn add_tag(&mut self, block: &str) {
        let (tag, rest) = block.split_once(char::is_whitespace).unwrap_or((block, ""));
        match tag {
            "@param" | "@arg" | "@argument" => self.parameters.extend(parameter(rest)),
            "@returns" | "@return" => self.returns = braced(rest).0,
            "@type" => self.kind = braced(rest).0,
            "@private" | "@internal" => self.is_private = true,
            "@description" | "@summary" if self.summary.is_empty() => self.summary = first_paragraph(rest),
            _ => {}
        }
    }
}

fn first_paragraph(text: &str) -> String {
    let paragraph = text.trim().split("\n\n").next().unwrap_or_default();
    cut(one_line(paragraph), DESCRIPTION_CHARS_MAX)
}

/// `None` for properties of a parameter (`options.step`), which are not parameters.
fn parameter(text: &str) -> Option<DocParameter> {
    let (kind, rest) = braced(text);
    let rest = rest.trim_start();
    let (name, text) = match rest.strip_prefix('[') {
        Some(bracketed) => bracketed_name(bracketed),
        None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
    };
    let (name, default) = match name.split_once('=') {
        Some((name, default)) => (name, Some(default.trim().to_owned())),
        None => (name, None),
    };
    let mut parameter = DocParameter { name: name.trim().to_owned(), default, optional: rest.starts_with('['), ..Default::default() };
    parameter.text = first_paragraph(text.trim_start().strip_prefix("- ").unwrap_or(text));
    if let Some(kind) = kind {
        let (kind, rest) = kind.strip_prefix("...").map_or((kind.as_str(), false), |kind| (kind, true));
        let (kind, optional) = kind.strip_suffix('=').map_or((kind, false), |kind| (kind, true));
        parameter.rest = rest;
        parameter.optional |= optional;
        parameter.kind = Some(if rest { format!("{kind}[]") } else { kind.to_owned() });
    }
    (!parameter.name.is_empty() && !parameter.name.contains(['.', '['])).then_some(parameter)
}

/// Up to the matching bracket, because a default value may contain brackets.
fn bracketed_name(text: &str) -> (&str, &str) {
    let mut depth = 1usize;
    for (index, character) in text.char_indices() {
        match character {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return (&text[..index], &text[index + 1..]);
        }
    }
    (text, "")
}

/// A type in braces, which may be nested, and the text after it.
fn braced(text: &str) -> (Option<String>, &str) {
    let text = text.trim_start();
    let mut depth = 0usize;
    for (index, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ if depth == 0 => break,
            _ => {}
        }
        if depth == 0 {
            let inner = one_line(text.get(1..index).unwrap_or_default());
            return ((!inner.is_empty()).then(|| cut(inner, TYPE_CHARS_MAX)), &text[index + 1..]);
        }
    }
    (None, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_parameters_and_returns_are_read() {
        let doc = Doc::parse(
            "\n * Adds months\n * to a date.\n *\n * More.\n * @param {Date} date where\n *   to begin\n * @param {{ a: number }} [options={}] - how\n \
             * @param {number} options.a not one\n * @param {...string} words all\n * @param {number=} n\n * @param {string[]} [list=[1, [2]]] some\n * @returns {Promise<Date>} later\n ",
        );
        assert_eq!(doc.summary, "Adds months to a date.");
        assert_eq!(doc.returns.as_deref(), Some("Promise<Date>"));
        let names: Vec<_> = doc.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
        assert_eq!(names, ["date", "options", "words", "n", "list"]);
        let date = doc.parameter("date").expect("there");
        assert_eq!((date.kind.as_deref(), date.text.as_str(), date.optional), (Some("Date"), "where to begin", false));
        let options = doc.parameter("options").expect("there");
        assert_eq!(
            (options.kind.as_deref(), options.default.as_deref(), options.text.as_str()),
            (Some("{ a: number }"), Some("{}"), "how")
        );
        let list = doc.parameter("list").expect("there");
        assert_eq!((list.default.as_deref(), list.text.as_str()), (Some("[1, [2]]"), "some"));
        assert_eq!(doc.parameter("words").map(|words| (words.kind.as_deref(), words.rest)), Some((Some("string[]"), true)));
        assert_eq!(doc.parameter("n").map(|n| (n.kind.as_deref(), n.optional)), Some((Some("number"), true)));
    }

    proptest::proptest! {
        #[test]
        fn no_comment_can_break_it(text in "([@a-z{}\\[\\]=. *ä\n-]|@param|@returns)*") {
            Doc::parse(&text);
        }
    }

    #[test]
    fn odd_comments_do_no_harm() {
        assert_eq!(Doc::parse(""), Doc::default());
        assert!(Doc::parse(" @internal ").is_private);
        for text in ["@param", "@param {", "@param {}", "@param {a", "@param [", "@param [=", "@returns", "@param {ä} ö ü", "@type {{}"]
        {
            Doc::parse(text);
        }
        assert_eq!(Doc::parse(" One. ").summary, "One.");
    }
}
