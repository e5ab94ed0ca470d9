//! Whether input with a syntax error is incomplete: then the parser reports the error after the last character.
//!
//! The parser decides, because counting brackets would have to tell a division from a regular expression. Code that does not compile has
//! not run, so trying has no side effects.

/// `input` was refused with this message, which ends in `at main.js:<line>:<column>`, both counted from 1.
pub fn ended_early(input: &str, syntax_error: &str) -> bool {
    let Some((line, column)) = position(syntax_error) else { return false };
    let input = input.trim_end();
    let last_line = input.lines().count();
    // V8 counts columns in UTF-16 units.
    let last_column = input.lines().last().map_or(0, |text| text.encode_utf16().count());
    line > last_line || (line == last_line && column > last_column)
}

fn position(syntax_error: &str) -> Option<(usize, usize)> {
    let mut parts = syntax_error.lines().last()?.rsplit(':');
    let column = parts.next()?.parse().ok()?;
    let line = parts.next()?.parse().ok()?;
    Some((line, column))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, line: usize, column: usize, expected: bool) {
        let error = format!("SyntaxError: whatever\n    at main.js:{line}:{column}");
        assert_eq!(ended_early(input, &error), expected, "{input:?} at {line}:{column}");
    }

    #[test]
    fn only_an_error_at_the_end_means_incomplete_input() {
        check("foo(", 2, 22, true);
        check("foo(1,\n 2", 2, 3, true);
        check("/* x", 1, 5, true);
        check("interface A {\n a: string\n\n", 2, 12, true);
        check("a = = 3", 1, 5, false);
        check("foo(\n}", 2, 1, false);
        check("x = }", 1, 5, false);
        check("'😀😀😀'; )", 1, 11, false);
        check("", 1, 1, true);
        assert!(!ended_early("foo(", "SyntaxError: without a position"));
    }
}
