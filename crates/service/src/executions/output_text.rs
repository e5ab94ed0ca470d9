//! Console output as callers see it: what the code wrote, and one last line if it wrote more than is stored.

use heapstead_types::Limits;

pub struct OutputText {
    mb_max: u64,
    ends_in_newline: bool,
}

impl OutputText {
    pub fn new(limits: &Limits) -> Self {
        Self { mb_max: limits.output_bytes_max >> 20, ends_in_newline: true }
    }

    /// Passes on what the code wrote.
    pub fn written(&mut self, text: Vec<u8>) -> Vec<u8> {
        if let Some(last) = text.last() {
            self.ends_in_newline = *last == b'\n';
        }
        text
    }

    /// The last line, on a line of its own: later output is dropped.
    pub fn dropped(&mut self) -> Vec<u8> {
        self.last_line(&format!("[output truncated: more than {} MB was written]", self.mb_max))
    }

    /// As `dropped`, because the owner has as much stored as allowed.
    pub fn over_quota(&mut self, stored_mb_max: u64) -> Vec<u8> {
        self.last_line(&format!("[output truncated: you have {stored_mb_max} MB stored, which is as much as an owner may have]"))
    }

    fn last_line(&mut self, text: &str) -> Vec<u8> {
        let separator = if self.ends_in_newline { "" } else { "\n" };
        self.written(format!("{separator}{text}\n").into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(written: &[&str], expected: &str) {
        let mut output = OutputText::new(&Limits { output_bytes_max: 3 << 20, ..Limits::default() });
        let mut seen: Vec<u8> = written.iter().flat_map(|text| output.written(text.as_bytes().to_vec())).collect();
        seen.extend(output.dropped());
        assert_eq!(String::from_utf8_lossy(&seen), expected);
    }

    #[test]
    fn the_last_line_is_a_line_of_its_own() {
        const LAST: &str = "[output truncated: more than 3 MB was written]\n";
        check(&[], LAST);
        check(&["a\n"], &format!("a\n{LAST}"));
        check(&["a\n", "b"], &format!("a\nb\n{LAST}"));
        check(&["a\n", ""], &format!("a\n{LAST}"));
    }
}
