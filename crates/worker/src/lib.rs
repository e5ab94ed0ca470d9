//! What runs inside the zygote and its workers. Nothing here may know the server, tokio or a store: it gets descriptors and gives bytes.

pub mod allocator;
mod compact;
pub mod confine;
mod entry;
mod session;
mod strip;
mod text;
pub mod vm;
mod zygote;

pub use entry::{LibcStart, Main, interpose, pass_on_madvise, remembered_getattr};
pub use session::Session;
pub use zygote::{Runner, main};
