//! The engine: runs each job in its own worker process and returns output, result and heap. It knows nothing of protocols and stores.
//!
//! ```text
//! Engine::submit ─► Scheduler (slots, memory, fairness) ─► Zygote (fork) ─► job driver: messages in, events out, kill at the end
//! ```

mod artifacts;
mod config;
mod engine;
mod follower;
mod heap_image;
mod job_driver;
mod run_requests;
mod scheduler;
mod v8_version;
mod worker;
mod zygote;
mod zygote_process;

pub use artifacts::{Artifacts, ArtifactsError};
pub use config::{Config, Spares};
pub use engine::{Canceller, Engine, EngineInfo, Event, Execution, Job, Kind, Outcome, Place, ReservedPlace, StartError};
pub use heap_image::HeapImage;
pub use scheduler::{Lane, Load, Refused};
