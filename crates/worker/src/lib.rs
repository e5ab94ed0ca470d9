//! What runs inside the zygote and its workers. Nothing here may know the server, tokio or a store: it gets descriptors and gives bytes.

pub mod allocator;
mod channel;
pub mod confine;
mod entry;
mod text;
pub mod vm;
mod zygote;

pub use channel::{Channel, RequestError};
pub use entry::{LibcStart, Main, interpose, pass_on_madvise, remembered_getattr};
pub use zygote::{Runner, main};
