//! Every bound on a record, in one place. A record of the largest parts stays below [`RECORD_BYTES_MAX`].

/// At this many recent calls the older ones are folded into the summary.
pub const CALLS_FOLD_AT: usize = 15;
/// So many of the newest are never touched by that.
pub const CALLS_KEPT: usize = 10;
/// Results worth noting in one paragraph of the summary.
pub const NOTED_RESULTS_MAX: usize = 3;
/// The summary of all folded calls. Past it, its oldest paragraphs become one.
pub const SUMMARY_BYTES_MAX: usize = 8 * 1024;
/// Tools that one paragraph names; the rest are counted together.
pub const SUMMARY_TOOLS_MAX: usize = 20;

/// MCP asks for names of at most 128 characters.
pub const TOOL_NAME_BYTES_MAX: usize = 128;
/// Arguments of one recorded call, as JSON: enough to recognise the call.
pub const ARGS_BYTES_MAX: usize = 2 * 1024;
/// One text among them.
pub const ARG_CHARS_MAX: usize = 400;
/// One or two sentences.
pub const RESULT_SUMMARY_CHARS_MAX: usize = 280;

pub const RESOURCES_MAX: usize = 200;
pub const RESOURCE_ID_BYTES_MAX: usize = 512;
pub const CONTENT_HASH_BYTES_MAX: usize = 128;
pub const RESOURCE_SUMMARY_BYTES_MAX: usize = 1024;
/// All of them together, as JSON; the oldest leave.
pub const RESOURCES_BYTES_MAX: usize = 80 * 1024;

pub const SEARCHES_MAX: usize = 200;
pub const QUERY_BYTES_MAX: usize = 1024;
/// All of them together, as JSON; the oldest leave.
pub const SEARCHES_BYTES_MAX: usize = 80 * 1024;

pub const CUSTOM_KEYS_MAX: usize = 100;
pub const CUSTOM_KEY_BYTES_MAX: usize = 128;
/// One value, as JSON.
pub const CUSTOM_VALUE_BYTES_MAX: usize = 16 * 1024;
/// All of them together, with their keys, as JSON.
pub const CUSTOM_BYTES_MAX: usize = 64 * 1024;
/// Readers of JSON give up at 128 levels, and a record adds its own.
pub const CUSTOM_DEPTH_MAX: usize = 32;

pub const MAX_RESULTS_MAX: u64 = 10_000;
/// The longest tags of BCP 47 in use.
pub const LANGUAGE_BYTES_MAX: usize = 35;

/// A whole record, as JSON. What is larger in a store was not written by this crate, and is not parsed.
pub const RECORD_BYTES_MAX: usize = 512 * 1024;
