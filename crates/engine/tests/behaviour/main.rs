//! What code sees, and what becomes of it: the engine from the outside, on real workers.

mod chains;
mod console;
mod determinism;
mod errors;
mod kept;
mod language;
mod language_page;
mod limits;
mod output;
mod parity;
mod scheduling;
mod stateless;
mod support;
mod survival;
mod typescript;
