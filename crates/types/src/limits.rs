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

/// V8's heap, buffers of up to the same size, and the memory to write a snapshot: its bytes and V8's table of all objects.
const HEAPS_PER_WORKER: u64 = 3;
/// What a worker uses besides heaps: V8's range for machine code (64 MB, which counts in full), its tables and new space, and the memory of
/// compilers and the parser.
const WORKER_MB_BASE: u64 = 64 + 96;
/// What a snapshot contains besides the heap and its buffers.
const SNAPSHOT_MB_BASE: u64 = 16;

/// The most memory that a worker with this heap cap can use, enforced by the kernel. The scheduler counts this much for it.
pub const fn worker_mb_max(heap_mb: u32) -> u64 {
    HEAPS_PER_WORKER * heap_mb as u64 + WORKER_MB_BASE
}

/// The largest heap cap whose worker uses at most this much.
pub fn heap_mb_that_fits(worker_mb: u64) -> u32 {
    u32::try_from(worker_mb.saturating_sub(WORKER_MB_BASE) / HEAPS_PER_WORKER).unwrap_or(u32::MAX)
}

/// Total size of the heaps that a server keeps in memory. A run usually continues from the heap that the previous run produced, which then is
/// not read.
pub const HEAPS_CACHED_MB_MAX: u64 = 256;

/// The longest snapshot that a worker with this heap cap can write, enforced by the kernel: heap, buffers and some room.
pub const fn snapshot_mb_max(heap_mb: u32) -> u64 {
    2 * heap_mb as u64 + SNAPSHOT_MB_BASE
}

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

/// The most that a call may ask for instead of the server's [`Limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitMaxima {
    pub heap_mb: u32,
    pub timeout_secs: u32,
}

impl Default for LimitMaxima {
    fn default() -> Self {
        Self { heap_mb: HEAP_MB_MAX, timeout_secs: TIMEOUT_SECS_MAX }
    }
}

impl LimitMaxima {
    pub fn heap_mb(&self, parameter: &'static str, value: i64) -> Result<u32, LimitError> {
        in_range(parameter, value, HEAP_MB_MIN, self.heap_mb, "MB")
    }

    pub fn timeout_secs(&self, parameter: &'static str, value: i64) -> Result<u32, LimitError> {
        in_range(parameter, value, TIMEOUT_SECS_MIN, self.timeout_secs, "seconds")
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
    LimitMaxima::default().heap_mb(parameter, value)
}

pub fn timeout_secs(parameter: &'static str, value: i64) -> Result<u32, LimitError> {
    LimitMaxima::default().timeout_secs(parameter, value)
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
    fn the_largest_cap_that_fits_fits() {
        assert_eq!((worker_mb_max(64), snapshot_mb_max(64)), (352, 144));
        for (worker_mb, heap_mb) in [(352, 64), (351, 63), (355, 65), (160, 0), (0, 0)] {
            assert_eq!(heap_mb_that_fits(worker_mb), heap_mb);
        }
    }

    #[test]
    fn empty_and_too_long_code_is_refused() {
        assert_eq!(code(" \n"), Err(LimitError::CodeEmpty));
        assert_eq!(code("1"), Ok(()));
        assert_eq!(code(&"x".repeat(SOURCE_BYTES_MAX + 1)), Err(LimitError::CodeTooLong { bytes: SOURCE_BYTES_MAX + 1 }));
    }
}
