//! A zygote without the newest layers, which runs JavaScript: no namespaces, no control of speculation, and of the arguments of system calls
//! only those are filtered that would avoid a limit. The benchmark compares it with production.

use heapstead_wire::ZygoteSettings;
use heapstead_worker::confine::Layers;
use heapstead_worker::{serve as serve_zygote, vm};
use std::path::Path;

/// Prefix of a base heap's name that selects this zygote. The path follows.
pub const PREFIX: &str = "earlier-layers:";

const LAYERS: Layers = Layers { namespaces: false, speculation_off: false, policy: include_str!("../policy/earlier.json") };

pub fn serve(base_heap: &str, settings: &str) -> ! {
    std::process::exit(match ZygoteSettings::from_word(settings) {
        Some(settings) => serve_zygote(Path::new(base_heap), settings, &LAYERS, vm::run),
        None => 1,
    })
}
