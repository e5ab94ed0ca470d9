//! What the product does, whoever asks for it: a run from its heap to its record. It knows neither terminals nor protocols.

mod end;
mod output;
mod run;

pub use end::{End, Finished};
pub use run::{Mode, OnMissingHeap, Origin, Request, Run};
