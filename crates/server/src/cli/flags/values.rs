//! Parses and checks flag values. clap prints the flag and the value before these messages, which say what is allowed.

use heapstead_types::{HeapKey, LimitError, limits};
use std::time::Duration;

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
    // A text that is not a number is out of range.
    let value = text.parse().unwrap_or(i64::MIN);
    check("", value).map_err(|error| match error {
        LimitError::OutOfRange { min, max, unit, .. } => format!("allowed are {min} to {max} {unit}"),
        other => other.to_string(),
    })
}

/// A whole number in an inclusive range.
pub fn between<const MIN: u64, const MAX: u64>(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(value) if (MIN..=MAX).contains(&value) => Ok(value),
        _ => Err(format!("allowed are {MIN} to {MAX}")),
    }
}

/// A number with a unit.
pub fn duration(text: &str) -> Result<Duration, &'static str> {
    const ALLOWED: &str = "expected a number from 1 to 9999 and s, m, h, d or w, such as 30m or 24h";
    let (number, unit_secs) = match text.split_at_checked(text.len().saturating_sub(1)) {
        Some((number, "s")) => (number, 1),
        Some((number, "m")) => (number, 60),
        Some((number, "h")) => (number, 3600),
        Some((number, "d")) => (number, 24 * 3600),
        Some((number, "w")) => (number, 7 * 24 * 3600),
        _ => return Err(ALLOWED),
    };
    let plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = number.parse().ok().filter(|number| plain && (1..=9999).contains(number)).ok_or(ALLOWED)?;
    Ok(Duration::from_secs(number * unit_secs))
}

/// A flag whose values are documented as `on` and `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "lower")]
pub enum OnOff {
    On,
    Off,
}

impl OnOff {
    pub fn is_on(self) -> bool {
        self == Self::On
    }
}

pub fn boolish(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" | "" => Ok(false),
        _ => Err("allowed are true and false".into()),
    }
}

/// Accepts the names of all S3-compatible stores; Amazon's own no longer allows capitals and underscores.
pub fn bucket_name(text: &str) -> Result<String, &'static str> {
    let is_name = (3..=63).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if is_name { Ok(text.to_owned()) } else { Err("a bucket's name is 3 to 63 letters, digits, dots, dashes and underscores") }
}

pub fn not_empty(text: &str) -> Result<String, &'static str> {
    if text.is_empty() { Err("it may not be empty") } else { Ok(text.to_owned()) }
}

pub fn heap_key(text: &str) -> Result<HeapKey, &'static str> {
    text.parse().map_err(|_| "a heap key is 64 lowercase hex digits")
}

/// The heap to start from.
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
    fn a_time_is_a_number_and_a_unit() {
        for (text, secs) in [("1s", 1), ("30m", 1800), ("24h", 86_400), ("9999w", 6_047_395_200)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(secs)), "{text}");
        }
        for bad in ["", "s", "30", "0m", "-1m", "+1m", "1.5h", "10000d", "1 h", "1é"] {
            assert!(duration(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn bounds_are_inclusive() {
        assert_eq!((between::<1, 9>("1"), between::<1, 9>("9")), (Ok(1), Ok(9)));
        for bad in ["0", "10", "-1", "", "1.5", "x", "99999999999999999999"] {
            assert_eq!(between::<1, 9>(bad), Err("allowed are 1 to 9".into()), "{bad:?}");
        }
    }
}
