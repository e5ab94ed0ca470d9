//! Health and metrics, for operators.

mod health;
mod metrics;
mod shared_check;

pub use health::{ContextHealth, EngineHealth, Health, HealthStatus, HeapStoreHealth};
pub use metrics::{ContextMetrics, Metrics, StoreMetrics};

pub(crate) use metrics::{Meter, check_may_watch};
