//! The page of error codes, generated from their table.

use crate::http::PROBLEM_TYPE_PREFIX;
use heapstead_types::{ErrorCode, Fault};
use std::fmt::Write;

const START: &str = "\
# Error codes

Generated from the code by `make reference`; do not edit it by hand.

Every failure has a stable code. Compare codes in programs; texts may change. A code keeps its meaning and is never reused.

| where | member |
|---|---|
| the record of an execution (`get_execution`, `run_js`), the answer of a stateless `run_js` | `error_code` |
| a problem document over REST and HTTP | `type` |
| the result of a refused tool call over MCP | `_meta.heapstead.code` |
| a JSON-RPC error over MCP | `data.code` |

";

pub fn page() -> String {
    let mut page = START.to_owned();
    let _ = writeln!(page, "The type of a problem document is `{PROBLEM_TYPE_PREFIX}` followed by the code.\n");
    let _ = writeln!(page, "| code | who has to act | may a retry help | meaning |\n|---|---|---|---|");
    for code in ErrorCode::ALL {
        let fault = match code.fault() {
            Fault::Caller => "caller",
            Fault::Code => "code that ran",
            Fault::Server => "server",
        };
        let retry = if code.is_retryable() { "yes" } else { "no" };
        let _ = writeln!(page, "| `{code}` | {fault} | {retry} | {} |", code.meaning());
    }
    page
}
