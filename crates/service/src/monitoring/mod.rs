//! Health and metrics, for operators.

mod health;
mod live_health;
mod live_meter;
mod metrics;
mod shared_check;

pub use health::{ContextHealth, EngineHealth, Health, HealthStatus, HeapStoreHealth};
pub use live_health::LiveHealth;
pub use metrics::{ContextMetrics, LiveMetrics, Metrics, StoreMetrics};

pub(crate) use live_meter::{EvictionReason, LiveMeter};
pub(crate) use metrics::{Meter, check_may_watch};
