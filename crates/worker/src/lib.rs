//! The code of the zygote and its workers. It must not depend on the server, tokio or a store: it receives descriptors and sends bytes.

pub mod allocator;
mod channel;
mod code_pages;
pub mod confine;
mod entry;
mod families;
pub mod vm;
mod zygote;

pub use channel::{Channel, Javascript, Recording, RequestError};
pub use entry::{LibcStart, Main, cached_getattr, coarse_gettimeofday, forward_madvise, libc_start_main};
pub use zygote::{Runner, main, serve};
