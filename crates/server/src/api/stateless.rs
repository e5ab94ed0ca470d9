//! The one tool of stateless mode: `run_js`, which waits and answers with the whole output.

use super::executions::run_limits;
use super::operation::{Arguments, Description, FailureShape, LongText, Operation, Route, Shown};
use heapstead_service::Stateless;
use heapstead_types::limits;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

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
    .with_long_text(LongText { member: "output", part: output_part, shown: Shown::Whole })
}

fn output_part(answer: &Value, shown_bytes: usize) -> Arguments {
    let output_bytes = answer["output"].as_str().map_or(0, str::len);
    let rest = format!(
        "the first {shown_bytes} of {output_bytes} bytes are shown, and a stateless server keeps nothing: run code that writes less, or use REST, \
         which returns the whole output"
    );
    [("truncated", json!(true)), ("output_bytes", json!(output_bytes)), ("rest", json!(rest))]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}
