//! Fuzz targets: one function per parser of bytes from outside the process.

mod allocator;
mod targets;

pub use allocator::within;
pub use targets::{Target, target};
