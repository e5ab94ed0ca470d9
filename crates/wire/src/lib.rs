//! The protocols between server, zygote and worker: bounded frames over stream sockets, with attached descriptors.
//!
//! Server and worker exchange [`ToWorker`] and [`FromWorker`] messages, each a frame (see `frame.rs`). `order.rs` defines their order.
//! Server and zygote exchange [`control`] messages.
#![forbid(unsafe_code)]

pub mod control;
mod decoder;
mod descriptors;
mod failure_codec;
mod frame;
mod from_worker;
mod leb128;
mod numbers;
mod order;
mod reader;
mod recorded_inputs;
mod script_form;
mod to_worker;
mod zygote_settings;

pub use decoder::Decoder;
pub use descriptors::{receive_with_descriptors, send_with_descriptors};
pub use frame::{FrameError, HEAD_BYTES};
pub use from_worker::{ANSWER_BYTES_MAX, CALL_BYTES_MAX, FromWorker, OUTPUT_BYTES_MAX, Written};
pub use numbers::{CallNumber, RunNumber};
pub use order::{OrderError, ServerState, WorkerState};
pub use reader::{ReadError, Reader};
pub use recorded_inputs::{Gap, INPUTS_BYTES_MAX, InputRecorder, InputReplay, RecordedInputs};
pub use script_form::{Derivation, RefusedScript, SCRIPT_FORM_BYTES_MAX, ScriptForm};
pub use to_worker::{Open, Replay, RunSettings, SEED_BYTES, ToWorker};
pub use zygote_settings::{TIMER_RESOLUTION_US_DEFAULT, TIMER_RESOLUTION_US_MAX, ZygoteSettings};
