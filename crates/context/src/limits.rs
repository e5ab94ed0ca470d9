//! Every limit on a record. A record whose parts are all at their limit stays below [`RECORD_BYTES_MAX`].

/// Number of recent calls at which the older ones are folded into the summary.
pub const CALLS_FOLD_AT: usize = 15;
/// Number of newest calls that stay in the window.
pub const CALLS_KEPT: usize = 10;
/// Results quoted in one paragraph of the summary.
pub const NOTED_RESULTS_MAX: usize = 3;
/// The summary of all folded calls. Beyond it, the oldest paragraphs are merged.
pub const SUMMARY_BYTES_MAX: usize = 8 * 1024;
/// Tools that one paragraph names. The rest are counted together.
pub const SUMMARY_TOOLS_MAX: usize = 20;

/// MCP limits names to 128 characters.
pub const TOOL_NAME_BYTES_MAX: usize = 128;
/// Arguments of one recorded call as JSON: enough to recognise the call.
pub const ARGS_BYTES_MAX: usize = 2 * 1024;
/// One string in the arguments.
pub const ARG_CHARS_MAX: usize = 400;
/// One or two sentences.
pub const RESULT_SUMMARY_CHARS_MAX: usize = 280;

pub const RESOURCES_MAX: usize = 200;
pub const RESOURCE_ID_CHARS_MAX: usize = 512;
pub const CONTENT_HASH_CHARS_MAX: usize = 128;
pub const RESOURCE_SUMMARY_CHARS_MAX: usize = 1024;
/// All resources together as JSON. Beyond it, the oldest are removed.
pub const RESOURCES_BYTES_MAX: usize = 80 * 1024;

pub const SEARCHES_MAX: usize = 200;
pub const QUERY_CHARS_MAX: usize = 1024;
/// All searches together as JSON. Beyond it, the oldest are removed.
pub const SEARCHES_BYTES_MAX: usize = 80 * 1024;

pub const CUSTOM_KEYS_MAX: usize = 100;
pub const CUSTOM_KEY_BYTES_MAX: usize = 128;
/// One custom value as JSON.
pub const CUSTOM_VALUE_BYTES_MAX: usize = 16 * 1024;
/// All custom values together, with their keys, as JSON.
pub const CUSTOM_BYTES_MAX: usize = 64 * 1024;
/// JSON parsers stop at 128 levels, and a record adds its own.
pub const CUSTOM_DEPTH_MAX: usize = 32;

pub const MAX_RESULTS_MAX: u64 = 10_000;
/// The longest BCP 47 tags in use.
pub const LANGUAGE_BYTES_MAX: usize = 35;

/// A whole record as JSON. Larger stored values were not written by this crate and are not parsed.
pub const RECORD_BYTES_MAX: usize = 512 * 1024;
