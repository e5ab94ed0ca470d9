//! Bytes written as hex digits: the form of ids, keys and secrets.

/// Whether the text is this many bytes in lowercase hex. Strict, because ids are compared as texts and used as file names.
pub fn is_lowercase_hex(text: &str, bytes: usize) -> bool {
    text.len() == 2 * bytes && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ExecutionId, ServerId};

    #[test]
    fn only_lowercase_digits_of_the_right_number_are_accepted() {
        let good = "0123456789abcdef";
        assert!(is_lowercase_hex(good, 8) && good.parse::<ServerId>().is_ok() && good.repeat(2).parse::<ExecutionId>().is_ok());
        for bad in
            ["", "0", &good[1..], &format!("{good}0"), &good.to_uppercase(), &good.replace('a', "g"), &"é".repeat(8), "../../etc/passwd"]
        {
            assert!(!is_lowercase_hex(bad, 8) && bad.parse::<ServerId>().is_err() && bad.parse::<ExecutionId>().is_err(), "{bad}");
        }
    }
}
