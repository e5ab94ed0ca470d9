//! The list of targets. Each is a module with a function `run`, which panics if the input shows a bug.

use libfuzzer_sys::Corpus;
use libfuzzer_sys::arbitrary::{Arbitrary, Unstructured};

/// Runs a target on the bytes of an input.
pub type Target = fn(&[u8]) -> Corpus;

macro_rules! targets {
    ($($name:ident),+ $(,)?) => {
        $(mod $name;)+

        /// The target of this name.
        pub fn target(name: &str) -> Option<Target> {
            match name {
                $(stringify!($name) => Some(|bytes| run(bytes, $name::run)),)+
                _ => None,
            }
        }
    };
}

targets! {
    arguments,
    catalog,
    catalog_search,
    configuration,
    context_envelope,
    context_record,
    context_text,
    cursors,
    event_id,
    headers,
    heap_file,
    identifiers,
    json_body,
    json_rpc,
    jwt,
    jwt_claims,
    key_file,
    output_pages,
    peer_question,
    resource_uri,
    sealed_state,
    session_metadata,
    sidecar,
    token_file,
    type_stripping,
    worker_frames,
    zygote_messages,
}

/// Bytes that are too few for the type of the input are not kept.
fn run<'a, Input: Arbitrary<'a>>(bytes: &'a [u8], target: impl FnOnce(Input)) -> Corpus {
    match Input::arbitrary_take_rest(Unstructured::new(bytes)) {
        Ok(input) => {
            target(input);
            Corpus::Keep
        }
        Err(_) => Corpus::Reject,
    }
}
