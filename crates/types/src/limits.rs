//! The limits of one execution, each with its reason. `docs/limits.md` lists all limits of the product.

/// Default V8 heap limit of one run.
pub const HEAP_MB_DEFAULT: u32 = 64;
/// V8 needs this much for the base heap and its own new space.
pub const HEAP_MB_MIN: u32 = 8;
/// More than this is unreasonable for one run on a shared machine.
pub const HEAP_MB_MAX: u32 = 4096;

pub const TIMEOUT_SECS_DEFAULT: u32 = 30;
pub const TIMEOUT_SECS_MIN: u32 = 1;
/// An agent's call rarely waits longer than five minutes. Longer work belongs in several runs.
pub const TIMEOUT_SECS_MAX: u32 = 300;

/// Source text: a hundred times what a model can write.
pub const SOURCE_BYTES_MAX: usize = 16 << 20;
/// The serialised completion value.
pub const RESULT_BYTES_MAX: usize = 16 << 20;
/// Console output of one execution.
pub const OUTPUT_MB_DEFAULT: u32 = 64;
pub const OUTPUT_MB_MAX: u32 = 4096;
/// Text of an error, enough for a long stack with causes. Longer texts are truncated.
pub const ERROR_BYTES_MAX: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub heap_mb: u32,
    pub timeout_secs: u32,
    pub output_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { heap_mb: HEAP_MB_DEFAULT, timeout_secs: TIMEOUT_SECS_DEFAULT, output_bytes_max: u64::from(OUTPUT_MB_DEFAULT) << 20 }
    }
}

/// A value out of range: names the parameter, the value and the allowed range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    #[error("`{parameter}` is {value}: allowed are {min} to {max} {unit}")]
    OutOfRange { parameter: &'static str, value: i64, min: u32, max: u32, unit: &'static str },
    #[error("`code` is empty: expected JavaScript or TypeScript source")]
    CodeEmpty,
    #[error("`code` is {bytes} bytes: at most {SOURCE_BYTES_MAX} bytes are allowed")]
    CodeTooLong { bytes: usize },
}

fn in_range(parameter: &'static str, value: i64, min: u32, max: u32, unit: &'static str) -> Result<u32, LimitError> {
    match u32::try_from(value) {
        Ok(fitting) if (min..=max).contains(&fitting) => Ok(fitting),
        _ => Err(LimitError::OutOfRange { parameter, value, min, max, unit }),
    }
}

pub fn heap_mb(parameter: &'static str, value: i64) -> Result<u32, LimitError> {
    in_range(parameter, value, HEAP_MB_MIN, HEAP_MB_MAX, "MB")
}

pub fn timeout_secs(parameter: &'static str, value: i64) -> Result<u32, LimitError> {
    in_range(parameter, value, TIMEOUT_SECS_MIN, TIMEOUT_SECS_MAX, "seconds")
}

pub fn output_mb(parameter: &'static str, value: i64) -> Result<u32, LimitError> {
    in_range(parameter, value, 1, OUTPUT_MB_MAX, "MB")
}

pub fn code(code: &str) -> Result<(), LimitError> {
    match code.len() {
        _ if code.trim().is_empty() => Err(LimitError::CodeEmpty),
        bytes if bytes > SOURCE_BYTES_MAX => Err(LimitError::CodeTooLong { bytes }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_inclusive_and_errors_name_parameter_value_and_range() {
        assert_eq!(timeout_secs("execution_timeout_secs", 1), Ok(1));
        assert_eq!(timeout_secs("execution_timeout_secs", 300), Ok(300));
        assert_eq!(heap_mb("heap_memory_max_mb", 8), Ok(8));
        assert_eq!(heap_mb("heap_memory_max_mb", 4096), Ok(4096));
        for (value, text) in [
            (0, "`execution_timeout_secs` is 0: allowed are 1 to 300 seconds"),
            (301, "`execution_timeout_secs` is 301: allowed are 1 to 300 seconds"),
            (-1, "`execution_timeout_secs` is -1: allowed are 1 to 300 seconds"),
        ] {
            assert_eq!(timeout_secs("execution_timeout_secs", value).expect_err("refused").to_string(), text);
        }
        assert_eq!(
            heap_mb("heap_memory_max_mb", 7).expect_err("refused").to_string(),
            "`heap_memory_max_mb` is 7: allowed are 8 to 4096 MB"
        );
        assert!(heap_mb("heap_memory_max_mb", i64::MAX).is_err());
    }

    #[test]
    fn empty_and_too_long_code_is_refused() {
        assert_eq!(code(" \n"), Err(LimitError::CodeEmpty));
        assert_eq!(code("1"), Ok(()));
        assert_eq!(code(&"x".repeat(SOURCE_BYTES_MAX + 1)), Err(LimitError::CodeTooLong { bytes: SOURCE_BYTES_MAX + 1 }));
    }
}
