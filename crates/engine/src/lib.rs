//! The engine: runs each job in its own worker process and returns output, result and heap. It knows nothing of protocols and stores.
//!
//! ```text
//! Engine::submit ─► Scheduler (slots, memory, fairness) ─► Zygote (fork) ─► job driver: messages in, events out, kill at the end
//! ```

mod answers;
mod artifacts;
mod available_memory;
pub mod cgroup;
mod config;
mod cpu_shares;
mod engine;
mod follower;
mod heap_image;
mod job_driver;
mod live;
mod pool;
mod run_requests;
mod scheduler;
mod source_text;
mod v8_version;
mod worker;
mod zygote;
mod zygote_process;
mod zygotes;

pub use answers::{ANSWERS_MB_MIN, SHORT_ANSWER_BYTES};
pub use artifacts::{Artifacts, ArtifactsError};
pub use available_memory::memory_mb_available;
pub use config::{ANSWERS_MB_DEFAULT, Config, Namespaces, Spares, memory_mb_of_machine, run_memory_mb_max};
pub use engine::{
    Canceller, Engine, EngineInfo, Event, Execution, Javascript, Job, Kind, Outcome, Place, Recorded, Recording, RecordingRoom, Replay,
    ReservedPlace, Slot, StartError,
};
pub use heap_image::HeapImage;
pub use heapstead_wire::ANSWER_BYTES_MAX;
pub use heapstead_wire::control::{OptionalLayer, StatefulJit};
pub use heapstead_wire::{
    Gap, RecordedInputs, RunNumber, SEED_BYTES, ScriptForm, TIMER_RESOLUTION_US_DEFAULT, TIMER_RESOLUTION_US_MAX, ZygoteSettings,
};
pub use live::{LiveTurn, LiveWorker};
pub use pool::Sharing;
pub use scheduler::{Load, Permit, Refused};
pub use source_text::SourceText;
pub use zygotes::IDLE_MAX as ZYGOTES_IDLE_MAX;
