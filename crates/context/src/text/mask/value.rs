//! Parses the value after a secret's name: where it begins, how it is quoted, and where it ends.

/// Quotes, and the backslash that escapes them.
pub const QUOTES: [char; 4] = ['"', '\'', '`', '\\'];

/// A value or a part of one.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// Its quote, with prefixes such as `r#`. Empty if it is not quoted.
    pub opening: &'a str,
    pub inside: &'a str,
    pub closing: &'a str,
}

/// Length of the text between a name and its value: `"] = `, `: `, ` => `, `?: `. `None` if there is no assignment.
pub fn assignment_bytes(after_name: &str) -> Option<usize> {
    let closed = after_name.trim_start_matches(QUOTES);
    let closed = closed.strip_prefix(']').unwrap_or(closed).trim_start().trim_start_matches(['?', '!', '|', '+', '~']);
    let value = skip_space(closed.trim_start_matches([':', '=', '>', '~']));
    closed.starts_with([':', '=']).then(|| after_name.len() - value.len())
}

/// Skips spaces, and line ends only before a quote, because the next paragraph is not a value.
pub fn skip_space(text: &str) -> &str {
    let quoted = text.trim_start();
    if is_quoted(quoted) { quoted } else { text.trim_start_matches([' ', '\t']) }
}

pub fn is_quoted(text: &str) -> bool {
    opening(text).is_some()
}

impl<'a> Part<'a> {
    pub fn at_start_of(text: &'a str) -> Self {
        quoted(text).unwrap_or_else(|| Self { opening: "", inside: unquoted(text), closing: "" })
    }

    pub fn is_quoted(&self) -> bool {
        !self.opening.is_empty()
    }

    pub fn bytes(&self) -> usize {
        self.opening.len() + self.inside.len() + self.closing.len()
    }
}

/// Ends at the end of the text if the quote is never closed.
fn quoted(text: &str) -> Option<Part<'_>> {
    let (opening_bytes, quote, depth) = opening(text)?;
    let triple = quote.to_string().repeat(3);
    if depth == 0 && text[opening_bytes - 1..].starts_with(&triple) {
        let (opening, after) = text.split_at(opening_bytes + 2);
        let (inside, after) = after.split_at(after.find(&triple).unwrap_or(after.len()));
        return Some(Part { opening, inside, closing: &after[..after.len().min(3)] });
    }
    let (opening, after) = text.split_at(opening_bytes);
    let mut slashes = 0;
    let mut letters = after.char_indices();
    while let Some((at, letter)) = letters.next() {
        if letter == '\\' {
            slashes += 1;
            continue;
        }
        if letter == quote && closes(slashes, depth) {
            let behind = &after[at + 1..];
            // SQL doubles a quote; a shell closes and reopens it.
            let is_doubled = depth == 0 && at > 0 && behind.starts_with(quote);
            let is_reentered = depth == 0 && behind.starts_with("\\''");
            if !is_doubled && !is_reentered {
                // In an escaped string, the backslashes before this quote belong to it.
                let begin = at - if depth > 0 { slashes.min(depth) } else { 0 };
                return Some(Part { opening, inside: &after[..begin], closing: &after[begin..=at] });
            }
            letters.by_ref().take(if is_doubled { 1 } else { 3 }).for_each(drop);
        }
        slashes = 0;
    }
    Some(Part { opening, inside: after, closing: "" })
}

/// An unquoted value ends at the next space or at the end of a list or sentence. Text in brackets is part of it.
fn unquoted(text: &str) -> &str {
    let mut at = 0;
    while let Some(letter) = text[at..].chars().next() {
        let next = at + letter.len_utf8();
        match letter {
            '(' | '[' | '{' => at = bracketed_end(text, at),
            '\\' if text[next..].starts_with(|letter: char| !matches!(letter, 'n' | 'r' | 't' | '"' | '\'' | '`' | '\\')) => at = next,
            _ if ends_value(letter) => break,
            _ => at = next,
        }
    }
    &text[..at]
}

/// Whether the value continues after a part of it: `"a" + "b"`, `x ?? "a"`, `string | null = "a"`.
pub fn goes_on(after: &str, was_quoted: bool, is_choice: bool) -> bool {
    let after = after.trim_start();
    let is_declared = || !was_quoted && !after.starts_with("</") && declares(after);
    match after.chars().next() {
        Some('+' | '?') => true,
        Some('=') => !was_quoted,
        Some('|') => after.starts_with("||") || is_declared(),
        Some('<' | '>') => is_declared(),
        Some(':') => is_choice,
        _ => false,
    }
}

pub fn is_operator(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '+' | '|' | '?' | '=' | '<' | '>' | ':' | '&')
}

/// Whether the rest of a type and then a value follow.
fn declares(after: &str) -> bool {
    let ends = |letter: char| matches!(letter, ';' | ',' | ')' | '}' | '\n') || QUOTES.contains(&letter);
    after[..after.find(ends).unwrap_or(after.len())].contains('=')
}

/// Length of the opening, its quote, and how many times that is escaped.
fn opening(text: &str) -> Option<(usize, char, usize)> {
    const PREFIXES: [&str; 10] = ["br", "rb", "fr", "rf", "r", "b", "f", "u", "$", "@"];
    let prefixed = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(text).trim_start_matches('#');
    let unescaped = prefixed.trim_start_matches('\\');
    let quote = unescaped.chars().next().filter(|letter| matches!(letter, '"' | '\'' | '`'))?;
    let slashes = prefixed.len() - unescaped.len();
    Some((text.len() - unescaped.len() + 1, quote, if slashes % 2 == 0 { 0 } else { slashes }))
}

/// Whether a quote after this many backslashes closes a string opened with `depth` of them.
fn closes(slashes: usize, depth: usize) -> bool {
    match (depth, slashes % 2) {
        (0, odd) => odd == 0,
        // It closes the enclosing string.
        (_, 0) => true,
        _ => closes((slashes - 1) / 2, (depth - 1) / 2),
    }
}

/// The position after the matching closing bracket, or the end of the text. Brackets in quotes do not count.
fn bracketed_end(text: &str, begin: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = begin;
    while let Some(letter) = text[at..].chars().next() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        let string = QUOTES.contains(&letter).then(|| quoted(&text[at..])).flatten();
        at += string.map_or(letter.len_utf8(), |string| string.bytes());
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

fn ends_value(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '"' | '\'' | '`' | ',' | ';' | '&' | ')' | '}' | ']' | '<' | '>' | '\\')
}
