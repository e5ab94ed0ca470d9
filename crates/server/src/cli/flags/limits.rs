//! Flags of what runs may use: limits of one run, and of all runs together.

use super::values::{between, heap_mb, output_mb, timeout_secs};
use super::{FlagError, RUNS};
use heapstead_engine::{ANSWERS_MB_DEFAULT, ANSWERS_MB_MIN, Sharing, memory_mb_of_machine, run_memory_mb_max};
use heapstead_types::{LimitMaxima, Limits, limits};

/// The limits of a run that sets none itself.
#[derive(clap::Args)]
pub struct LimitOptions {
    /// V8 heap limit of a run, 8 to 4096; a call may ask for more or less
    #[arg(long, value_name = "MB", env = "HEAPSTEAD_HEAP_MEMORY_MAX", default_value_t = limits::HEAP_MB_DEFAULT, value_parser = heap_mb, allow_negative_numbers = true, help_heading = RUNS)]
    heap_memory_max: u32,
    /// Wall-clock timeout of a run, 1 to 300; a call may ask for more or less
    #[arg(long, value_name = "SECONDS", env = "HEAPSTEAD_EXECUTION_TIMEOUT", default_value_t = limits::TIMEOUT_SECS_DEFAULT, value_parser = timeout_secs, allow_negative_numbers = true, help_heading = RUNS)]
    execution_timeout: u32,
    /// Maximum console output of a run, 1 to 4096
    #[arg(long, value_name = "MB", env = "HEAPSTEAD_OUTPUT_MAX_MB", default_value_t = limits::OUTPUT_MB_DEFAULT, value_parser = output_mb, allow_negative_numbers = true, help_heading = RUNS)]
    output_max_mb: u32,
}

impl LimitOptions {
    pub fn limits(&self) -> Limits {
        Limits {
            heap_mb: self.heap_memory_max,
            timeout_secs: self.execution_timeout,
            output_bytes_max: u64::from(self.output_max_mb) << 20,
        }
    }
}

/// What the operator allows to all runs together, and to a call that sets its own limits.
#[derive(clap::Args)]
pub struct CapacityOptions {
    /// Largest V8 heap limit that a call may ask for, 8 to 4096
    #[arg(long, value_name = "MB", env = "HEAPSTEAD_HEAP_MEMORY_LIMIT", default_value_t = limits::HEAP_MB_MAX, value_parser = heap_mb, allow_negative_numbers = true, help_heading = RUNS)]
    heap_memory_limit: u32,
    /// Longest timeout that a call may ask for, 1 to 300
    #[arg(long, value_name = "SECONDS", env = "HEAPSTEAD_EXECUTION_TIMEOUT_LIMIT", default_value_t = limits::TIMEOUT_SECS_MAX, value_parser = timeout_secs, allow_negative_numbers = true, help_heading = RUNS)]
    execution_timeout_limit: u32,
    /// Maximum number of concurrent executions, 1 to 4096
    #[arg(long, value_name = "COUNT", env = "HEAPSTEAD_MAX_CONCURRENT_EXECUTIONS", default_value_t = 64, value_parser = between::<1, 4096>, allow_negative_numbers = true, help_heading = RUNS)]
    pub max_concurrent_executions: u64,
    /// Maximum number of queued executions, 1 to 1000000; more are refused
    #[arg(long, value_name = "COUNT", env = "HEAPSTEAD_MAX_QUEUED", default_value_t = 1000, value_parser = between::<1, 1_000_000>, allow_negative_numbers = true, help_heading = RUNS)]
    pub max_queued: u64,
    /// Maximum total size of the source of queued and running executions, 16 to 1048576; more is refused
    #[arg(long, value_name = "MB", env = "HEAPSTEAD_MAX_SOURCE_MB", default_value_t = 256, value_parser = between::<16, { 1 << 20 }>, allow_negative_numbers = true, help_heading = RUNS)]
    pub max_source_mb: u64,
    /// Maximum total size of long results, and of the JavaScript that ran, until they are stored, 128 to 1048576; a worker whose answer does not fit waits
    #[arg(long, value_name = "MB", env = "HEAPSTEAD_MAX_ANSWER_MB", default_value_t = ANSWERS_MB_DEFAULT, value_parser = between::<ANSWERS_MB_MIN, { 1 << 20 }>, allow_negative_numbers = true, help_heading = RUNS)]
    pub max_answer_mb: u64,
    /// Total memory that the workers of concurrent executions may use, at least 8; a worker with a heap limit of N MB counts as 3 N + 160; default: three quarters of the memory of the machine, or of its container
    #[arg(long, value_name = "MB", env = "HEAPSTEAD_MAX_MEMORY_MB", value_parser = between::<8, { 1 << 30 }>, allow_negative_numbers = true, help_heading = RUNS)]
    max_memory_mb: Option<u64>,
}

impl CapacityOptions {
    /// The most that a call may ask for: what the operator allows, and what the memory of all runs has room for.
    pub fn maxima(&self, sharing: Sharing) -> LimitMaxima {
        let fitting = limits::heap_mb_that_fits(run_memory_mb_max(self.memory_mb(), sharing));
        LimitMaxima { heap_mb: self.heap_memory_limit.min(fitting), timeout_secs: self.execution_timeout_limit }
    }

    pub fn memory_mb(&self) -> u64 {
        self.max_memory_mb.unwrap_or_else(|| memory_mb_of_machine() * 3 / 4)
    }

    /// Refuses flags that contradict each other, or under which no run could start.
    pub fn check(&self, default: Limits, sharing: Sharing) -> Result<(), FlagError> {
        for (flag, value, limit_flag, limit) in [
            ("--heap-memory-max", default.heap_mb, "--heap-memory-limit", self.heap_memory_limit),
            ("--execution-timeout", default.timeout_secs, "--execution-timeout-limit", self.execution_timeout_limit),
        ] {
            if value > limit {
                return Err(FlagError::DefaultAboveLimit { flag, value, limit_flag, limit });
            }
        }
        let (memory_mb, heap_mb, worker_mb) = (self.memory_mb(), default.heap_mb, limits::worker_mb_max(default.heap_mb));
        let run_mb = run_memory_mb_max(memory_mb, sharing);
        if worker_mb > run_mb { Err(FlagError::MemoryBelowCap { memory_mb, heap_mb, worker_mb, run_mb }) } else { Ok(()) }
    }
}
