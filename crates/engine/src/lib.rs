//! The engine: runs code in workers of their own and brings back output, result and heap. It knows processes, not protocols or stores.
//!
//! ```text
//! Engine::submit ─► Scheduler (slots, memory, fairness) ─► Zygote (fork) ─► driver: messages in, events out, kill at the end
//! ```

mod artifacts;
mod config;
mod driver;
mod engine;
mod follower;
mod heap_image;
mod one_shot;
mod scheduler;
mod v8_version;
mod worker;
mod zygote;
mod zygote_process;

pub use artifacts::{Artifacts, ArtifactsError};
pub use config::{Config, Spares};
pub use engine::{Canceller, Engine, EngineInfo, Event, Execution, Held, Job, Kind, Outcome, Place, StartError};
pub use heap_image::HeapImage;
pub use scheduler::{Lane, Load, Refused};
