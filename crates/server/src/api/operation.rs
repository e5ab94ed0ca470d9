//! One thing that can be asked for: what it is called, what it takes, what it answers, and how it is done.

use super::{params, schema};
use heapstead_service::{Caller, Service, ServiceError};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub type Arguments = Map<String, Value>;
type Answer = Pin<Box<dyn Future<Output = Result<Success, Failed>> + Send>>;
type Handler = Arc<dyn Fn(Caller, Arguments) -> Answer + Send + Sync>;

#[derive(Clone)]
pub struct Operation {
    pub name: &'static str,
    pub title: &'static str,
    /// For whoever has to choose it and call it right: an agent, most of the time.
    pub description: &'static str,
    pub is_tool: bool,
    pub read_only: bool,
    pub route: Route,
    /// JSON schema of the arguments: an object.
    pub input: Value,
    /// JSON schema of the answer.
    pub output: Value,
    pub failure: FailureShape,
    pub long_text: Option<LongText>,
    handler: Handler,
}

/// The one text of an answer that may be too long for a message.
#[derive(Clone, Copy)]
pub struct LongText {
    /// The member of the answer that holds it.
    pub member: &'static str,
    /// What else an answer says that shows only this many bytes of it.
    pub part: fn(answer: &Value, shown_bytes: usize) -> Arguments,
    pub shown: Shown,
}

/// How much of a long text a model is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// What the operator allows; the whole can be read elsewhere.
    Preview,
    /// As much as a message holds, because it can be read nowhere else.
    Whole,
}

/// Where REST has it. What stands in braces is an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    pub method: &'static str,
    pub path: &'static str,
}

/// What an operation is before it is known how it is done.
pub struct Description {
    pub name: &'static str,
    pub title: &'static str,
    pub text: &'static str,
    pub is_tool: bool,
    pub read_only: bool,
    pub route: Route,
    pub failure: FailureShape,
}

/// How an operation says that it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureShape {
    /// By the error alone.
    Error,
    /// As `{ "ok": false, "error": … }`.
    Ok,
}

impl FailureShape {
    /// What an answer says when this went wrong; null when it says nothing.
    pub fn body(self, error: &str) -> Value {
        match self {
            Self::Error => Value::Null,
            Self::Ok => json!({ "ok": false, "error": error }),
        }
    }
}

/// An answer, and whether it speaks of something that still goes on.
#[derive(Debug)]
pub struct Success {
    pub body: Value,
    pub pending: bool,
}

/// An error, and the body that goes with it.
#[derive(Debug)]
pub struct Failed {
    pub error: ServiceError,
    /// In the shape of the operation's answer; null when it has none for failures.
    pub body: Value,
}

/// The answer of operations that only do something.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Done {
    pub ok: bool,
    /// Why not, when `ok` is false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Done {
    pub const OK: Self = Self { ok: true, error: None };
}

/// An answer whose execution may still run.
pub struct Pending<A> {
    pub answer: A,
    pub pending: bool,
}

impl Operation {
    /// `doer` is what does it: each call gets its own.
    pub fn new<D, P, A, F>(doer: &D, description: Description, work: impl Fn(D, Caller, P) -> F + Send + Sync + 'static) -> Self
    where
        D: Clone + Send + Sync + 'static,
        P: DeserializeOwned + JsonSchema + Send + 'static,
        A: Serialize + JsonSchema,
        F: Future<Output = Result<A, ServiceError>> + Send + 'static,
    {
        Self::with_output(doer, description, schema::output::<A>(), move |doer, caller, params| {
            let answer = work(doer, caller, params);
            async move { Ok(Pending { answer: answer.await?, pending: false }) }
        })
    }

    /// With an answer that may speak of something that still goes on.
    pub fn with_output<D, P, A, F>(
        doer: &D,
        description: Description,
        output: Value,
        work: impl Fn(D, Caller, P) -> F + Send + Sync + 'static,
    ) -> Self
    where
        D: Clone + Send + Sync + 'static,
        P: DeserializeOwned + JsonSchema + Send + 'static,
        A: Serialize,
        F: Future<Output = Result<Pending<A>, ServiceError>> + Send + 'static,
    {
        let Description { name, title, text, is_tool, read_only, route, failure } = description;
        let input = schema::input::<P>();
        let (checked, doer, work) = (input.clone(), doer.clone(), Arc::new(work));
        let handler = move |caller, arguments| -> Answer {
            let parsed = params::parse::<P>(name, &checked, arguments);
            let (doer, work) = (doer.clone(), work.clone());
            Box::pin(async move {
                let done = async { work(doer, caller, parsed?).await };
                match done.await {
                    Ok(Pending { answer, pending }) => Ok(Success { body: to_json(&answer), pending }),
                    Err(error) => Err(Failed { body: failure.body(&error.to_string()), error }),
                }
            })
        };
        Self {
            name,
            title,
            description: text,
            is_tool,
            read_only,
            route,
            input,
            output,
            failure,
            long_text: None,
            handler: Arc::new(handler),
        }
    }

    /// The same, whose answer may hold a text that is too long for a message.
    pub fn with_long_text(self, long_text: LongText) -> Self {
        Self { long_text: Some(long_text), ..self }
    }

    /// The same, remembered by the conversation that a call belongs to. This is the one place where that is done.
    pub fn remembered(self, service: &Service) -> Self {
        let (service, name, reads, work) = (service.clone(), self.name, self.read_only, self.handler);
        let handler = move |caller: Caller, arguments: Arguments| -> Answer {
            let Some(noting) = service.note(name, reads, &caller, &arguments) else { return work(caller, arguments) };
            let answer = work(Caller { call: Some(noting.call()), ..caller }, arguments);
            Box::pin(async move {
                let answer = answer.await;
                match &answer {
                    Ok(success) => noting.answered(&success.body),
                    Err(failed) => noting.failed(&failed.error),
                }
                answer
            })
        };
        Self { handler: Arc::new(handler), ..self }
    }

    /// The same, under another name and with other arguments.
    pub fn under(&self, name: &'static str, input: Value) -> Self {
        Self { name, input, ..self.clone() }
    }

    /// Checks the arguments and does it.
    pub fn call(&self, caller: Caller, arguments: Arguments) -> impl Future<Output = Result<Success, Failed>> + Send + use<> {
        (self.handler)(caller, arguments)
    }
}

fn to_json(answer: &impl Serialize) -> Value {
    // Our own answers are structs of strings, numbers and maps of strings, which all have a JSON form.
    serde_json::to_value(answer).unwrap_or_default()
}
