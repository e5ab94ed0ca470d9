//! The one tool of stateless mode: `run_js`, which waits and answers with the whole output.

use super::executions::run_limits;
use super::operation::{Description, FailureShape, Operation, Route};
use heapstead_service::Stateless;
use heapstead_types::limits;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct RunJs {
    /// JavaScript or TypeScript; types are stripped before it runs. What it writes with `console.log` is the answer.
    #[schemars(length(min = 1))]
    code: String,
    /// Memory cap of this run in MB.
    #[schemars(range(min = limits::HEAP_MB_MIN, max = limits::HEAP_MB_MAX))]
    heap_memory_max_mb: Option<i64>,
    /// How long the code may run, in seconds.
    #[schemars(range(min = limits::TIMEOUT_SECS_MIN, max = limits::TIMEOUT_SECS_MAX))]
    execution_timeout_secs: Option<i64>,
}

pub fn run_js(stateless: &Stateless) -> Operation {
    let description = Description {
        name: "run_js",
        title: "Run JavaScript",
        text: include_str!("descriptions/run_js_stateless.md"),
        is_tool: true,
        read_only: false,
        route: Route { method: "POST", path: "/api/exec" },
        failure: FailureShape::Error,
    };
    Operation::new(stateless, description, |stateless, caller, params: RunJs| async move {
        let limits = run_limits(stateless.limits(), params.heap_memory_max_mb, params.execution_timeout_secs)?;
        stateless.run(&caller, params.code, limits).await
    })
}
