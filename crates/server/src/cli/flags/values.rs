//! Values of flags, checked. clap puts the flag and the value before these texts, which say what is allowed.

use heapstead_types::{HeapKey, LimitError, limits};

pub fn heap_mb(text: &str) -> Result<u32, String> {
    bounded(text, limits::heap_mb)
}

pub fn timeout_secs(text: &str) -> Result<u32, String> {
    bounded(text, limits::timeout_secs)
}

pub fn output_mb(text: &str) -> Result<u32, String> {
    bounded(text, limits::output_mb)
}

fn bounded(text: &str, check: impl Fn(&'static str, i64) -> Result<u32, LimitError>) -> Result<u32, String> {
    // What is no number at all is outside any bounds.
    let value = text.parse().unwrap_or(i64::MIN);
    check("", value).map_err(|error| match error {
        LimitError::OutOfRange { min, max, unit, .. } => format!("allowed are {min} to {max} {unit}"),
        other => other.to_string(),
    })
}

/// A whole number, bounds included.
pub fn between<const MIN: u64, const MAX: u64>(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(value) if (MIN..=MAX).contains(&value) => Ok(value),
        _ => Err(format!("allowed are {MIN} to {MAX}")),
    }
}

pub fn boolish(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" | "" => Ok(false),
        _ => Err("allowed are true and false".into()),
    }
}

pub fn heap_key(text: &str) -> Result<HeapKey, &'static str> {
    text.parse().map_err(|_| "a heap key is 64 lowercase hex digits")
}

/// Where to begin.
#[derive(Debug, Clone, Copy)]
pub enum HeapChoice {
    Fresh,
    Key(HeapKey),
}

pub fn heap_choice(text: &str) -> Result<HeapChoice, &'static str> {
    if text.is_empty() { Ok(HeapChoice::Fresh) } else { heap_key(text).map(HeapChoice::Key) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_inclusive() {
        assert_eq!((between::<1, 9>("1"), between::<1, 9>("9")), (Ok(1), Ok(9)));
        for bad in ["0", "10", "-1", "", "1.5", "x", "99999999999999999999"] {
            assert_eq!(between::<1, 9>(bad), Err("allowed are 1 to 9".into()), "{bad:?}");
        }
    }
}
