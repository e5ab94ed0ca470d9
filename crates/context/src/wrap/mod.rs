//! Store wrappers: each adds one feature to any store.

mod audited;
mod encrypted;
mod metered;

pub use audited::Audited;
pub(crate) use encrypted::envelope;
pub use encrypted::{Encrypted, InvalidKeyFile, Keyring};
pub use metered::{Meter, Metered, Metrics};
