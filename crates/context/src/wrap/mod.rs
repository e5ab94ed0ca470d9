//! Store wrappers: each adds one feature to any store.

mod audited;
mod encrypted;
mod histogram;
mod metered;

pub use audited::Audited;
pub use encrypted::{Encrypted, InvalidKeyFile, Keyring};
pub use histogram::{Histogram, READ_LATENCY_BOUNDS_MS};
pub use metered::{Meter, Metered, Metrics};
