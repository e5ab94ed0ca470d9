//! Tests of the engine's observable behaviour on real workers: the environment of code and the outcome of runs.

mod chains;
mod console;
mod determinism;
mod errors;
mod hot_programs;
mod kept;
mod language;
mod language_page;
mod limits;
mod optimised;
mod output;
mod parity;
mod replay;
mod scheduling;
mod stateless;
mod support;
mod survival;
mod typescript;
