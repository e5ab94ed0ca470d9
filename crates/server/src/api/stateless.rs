//! `run_js` in stateless mode: waits for the run and returns its whole output.

use super::executions::run_maxima;
use super::operation::{Arguments, Description, LongText, Operation, Shown};
use heapstead_service::{RunParameters, Stateless};
use heapstead_types::limits;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
struct RunJs {
    /// JavaScript or TypeScript; types are stripped before it runs. The result is what it writes with `console.log`.
    #[schemars(regex(pattern = heapstead_service::schema::NOT_EMPTY))]
    code: String,
    /// Memory cap of this run in MB.
    #[schemars(range(min = limits::HEAP_MB_MIN, max = limits::HEAP_MB_MAX))]
    heap_memory_max_mb: Option<i64>,
    /// Time limit of the code, in seconds.
    #[schemars(range(min = limits::TIMEOUT_SECS_MIN, max = limits::TIMEOUT_SECS_MAX))]
    execution_timeout_secs: Option<i64>,
}

pub fn run_js(stateless: &Stateless) -> Operation {
    let description = Description {
        runs_code: true,
        may_conflict: true,
        reports_failure: |answer| answer.get("error").is_some_and(|error| !error.is_null()),
        maxima: run_maxima(stateless.maxima()),
        long_text: Some(LongText { member: "output", part: output_part, whole_bytes: "output_bytes", shown: Shown::Whole }),
        ..Description::tool("run_js", "Run JavaScript", include_str!("descriptions/run_js_stateless.md"), ("POST", "/api/exec"))
    };
    Operation::new(stateless, description, |stateless, caller, params: RunJs| async move {
        let parameters = RunParameters {
            code: params.code,
            heap_memory_max_mb: params.heap_memory_max_mb,
            execution_timeout_secs: params.execution_timeout_secs,
            ..RunParameters::default()
        };
        stateless.run(&caller, parameters).await
    })
}

fn output_part(_answer: &Value, shown_bytes: usize, output_bytes: usize) -> Arguments {
    let rest = format!(
        "the first {shown_bytes} of {output_bytes} bytes are shown, and a stateless server does not store the rest: run code that writes less, or use REST, \
         which returns the whole output"
    );
    [("truncated", json!(true)), ("output_bytes", json!(output_bytes)), ("rest", json!(rest))]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}
