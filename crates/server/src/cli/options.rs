//! Flags that several commands share, with the environment variables that mirror them. Every value is checked here, before anything runs.

use crate::local::{self, HEAP_FOLDER_DEFAULT, LocalError};
use heapstead_service::{OnMissingHeap, Origin};
use heapstead_store::HeapStore;
use heapstead_types::{HeapKey, LimitError, Limits, limits};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

#[derive(clap::Args)]
pub struct LimitOptions {
    /// V8 heap cap of a run, 8 to 4096
    #[arg(long, value_name = "MB", env = "HEAPSTEAD_HEAP_MEMORY_MAX", default_value_t = limits::HEAP_MB_DEFAULT, value_parser = heap_mb, allow_negative_numbers = true)]
    heap_memory_max: u32,
    /// Wall-clock limit of a run, 1 to 300
    #[arg(long, value_name = "SECONDS", env = "HEAPSTEAD_EXECUTION_TIMEOUT", default_value_t = limits::TIMEOUT_SECS_DEFAULT, value_parser = timeout_secs, allow_negative_numbers = true)]
    execution_timeout: u32,
    /// How much console output of a run is kept, 1 to 4096
    #[arg(long, value_name = "MB", env = "HEAPSTEAD_OUTPUT_MAX_MB", default_value_t = limits::OUTPUT_MB_DEFAULT, value_parser = output_mb, allow_negative_numbers = true)]
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

#[derive(clap::Args)]
pub struct OriginOptions {
    /// Go on from this heap (64 lowercase hex digits; empty: a fresh one)
    #[arg(long, value_name = "KEY", env = "HEAPSTEAD_HEAP")]
    heap: Option<HeapChoice>,
    /// What to do when that heap is not there
    #[arg(long, value_name = "WHAT", env = "HEAPSTEAD_ON_MISSING_HEAP", default_value = "fresh")]
    on_missing_heap: Missing,
}

impl OriginOptions {
    pub fn origin(&self) -> Origin {
        match self.heap {
            None | Some(HeapChoice::Fresh) => Origin::Fresh,
            Some(HeapChoice::Key(key)) => {
                Origin::Heap { key, on_missing: self.on_missing_heap.into() }
            }
        }
    }
}

#[derive(clap::Args)]
pub struct HeapFolderOptions {
    /// Folder the heaps are kept in
    #[arg(long, value_name = "DIR", env = "HEAPSTEAD_DIRECTORY_PATH", default_value = HEAP_FOLDER_DEFAULT)]
    pub directory_path: PathBuf,
}

/// Where heaps are kept: in a folder, or in S3, with a cache or without.
#[derive(clap::Args)]
pub struct HeapStoreOptions {
    #[command(flatten)]
    folder: HeapFolderOptions,
}

impl HeapStoreOptions {
    pub fn open(&self) -> Result<Arc<dyn HeapStore>, LocalError> {
        Ok(Arc::new(local::open_heaps(&self.folder.directory_path)?))
    }
}

#[derive(Clone, Copy, clap::ValueEnum)]
pub enum Missing {
    /// Begin with a fresh heap, and warn
    Fresh,
    /// Fail, and run nothing
    Fail,
}

impl From<Missing> for OnMissingHeap {
    fn from(missing: Missing) -> Self {
        match missing {
            Missing::Fresh => Self::Fresh,
            Missing::Fail => Self::Fail,
        }
    }
}

#[derive(Clone, Copy)]
enum HeapChoice {
    Fresh,
    Key(HeapKey),
}

impl FromStr for HeapChoice {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "" => Ok(Self::Fresh),
            // The caller repeats the value, so the text only says what is allowed.
            _ => text.parse().map(Self::Key).map_err(|_| "a heap key is 64 lowercase hex digits"),
        }
    }
}

fn heap_mb(text: &str) -> Result<u32, String> {
    bounded(text, limits::heap_mb)
}

fn timeout_secs(text: &str) -> Result<u32, String> {
    bounded(text, limits::timeout_secs)
}

fn output_mb(text: &str) -> Result<u32, String> {
    bounded(text, limits::output_mb)
}

/// A number inside its bounds. clap puts the flag and the value before the text, which says what is allowed.
fn bounded(text: &str, check: impl Fn(&'static str, i64) -> Result<u32, LimitError>) -> Result<u32, String> {
    // What is no number at all is outside any bounds.
    let value = text.parse().unwrap_or(i64::MIN);
    check("", value).map_err(|error| match error {
        LimitError::OutOfRange { min, max, unit, .. } => format!("allowed are {min} to {max} {unit}"),
        other => other.to_string(),
    })
}
