//! One operation: its name, parameters, answer and everything else that differs between operations. MCP, REST, the command line and the
//! documents are generated from this; nothing else compares operation names.

use super::alias::Alias;
use super::answer_stream::{self, AnswerStream, Paged};
use super::parameters::Parameters;
use super::schema;
use heapstead_service::{Caller, ListPage, LongAnswer, PageRoom, Service, ServiceError};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;

pub type Arguments = Map<String, Value>;
type Answer = Pin<Box<dyn Future<Output = Result<Success, Failed>> + Send>>;
type Handler = Arc<dyn Fn(Caller, Arguments) -> Answer + Send + Sync>;

pub struct Operation {
    description: Description,
    /// JSON schema of the arguments: an object.
    pub input: Value,
    /// JSON schema of the answer.
    pub output: Value,
    /// Of its aliases, in their order.
    alias_parameters: Arc<[Parameters]>,
    handler: Handler,
}

/// Everything that differs between operations besides their types and what they do.
#[derive(Clone)]
pub struct Description {
    pub name: &'static str,
    pub title: &'static str,
    /// The description for clients, usually read by a model.
    pub text: &'static str,
    pub is_tool: bool,
    pub read_only: bool,
    /// Whether it ends or deletes something. Operations with PUT and DELETE always do.
    pub destructive: bool,
    pub route: Route,
    pub failure: FailureShape,
    /// Runs code: it can be an MCP task, has `wait_secs`, and accepting the run refreshes the TTL of the session.
    pub runs_code: bool,
    /// Waits for the execution in its argument `execution_id`.
    pub follows_execution: bool,
    pub needs_session: NeedsSession,
    /// Whether it can be refused because of the state of what it names: an execution that has ended, a damaged heap, an unreadable context.
    pub may_conflict: bool,
    /// Whether conversation contexts record calls of it.
    pub is_recorded: bool,
    /// Whether an answer reports that what was requested failed.
    pub reports_failure: fn(&Value) -> bool,
    pub long_text: Option<LongText>,
    /// Operations that take the `execution_id` of its answer: the names of the link and of the operation. For OpenAPI.
    pub execution_links: &'static [(&'static str, &'static str)],
    /// Other names of the tool, for hosts that were written for them.
    pub aliases: &'static [Alias],
    /// Maxima of parameters that the operator chose, where they differ from those of the types.
    pub maxima: Vec<(&'static str, u32)>,
}

/// When an operation needs a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeedsSession {
    Never,
    /// If the operator requires sessions for runs.
    IfRequired,
    /// If there is no connection. A connection has its own context.
    WithoutConnection,
}

/// The one text of an answer that may be too long for a message.
#[derive(Clone, Copy)]
pub struct LongText {
    /// The member of the answer that holds it.
    pub member: &'static str,
    /// Further members of an answer that shows only this many bytes of it.
    pub part: fn(answer: &Value, shown_bytes: usize, whole_bytes: usize) -> Arguments,
    /// The member with the length of the whole text, in an answer that has only the beginning of it.
    pub whole_bytes: &'static str,
    pub shown: Shown,
}

/// How much of a long text a model is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// As much as the operator allows; the rest can be read elsewhere.
    Preview,
    /// As much as a message holds, because it can't be read elsewhere.
    Whole,
}

/// The REST endpoint. Parts in braces are arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    pub method: &'static str,
    pub path: &'static str,
}

/// How an operation reports that it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureShape {
    /// By the error alone.
    Error,
    /// As `{ "ok": false, "error": … }`.
    Ok,
}

impl FailureShape {
    /// The body of an answer that failed; null if there is none.
    pub fn body(self, error: &str) -> Value {
        match self {
            Self::Error => Value::Null,
            Self::Ok => json!({ "ok": false, "error": error }),
        }
    }
}

impl Description {
    /// An operation that is an MCP tool and a REST endpoint. It changes something and is recorded, unless said otherwise.
    pub fn tool(name: &'static str, title: &'static str, text: &'static str, route: (&'static str, &'static str)) -> Self {
        let (method, path) = route;
        Self {
            name,
            title,
            text,
            is_tool: true,
            read_only: false,
            destructive: matches!(method, "PUT" | "DELETE"),
            route: Route { method, path },
            failure: FailureShape::Error,
            runs_code: false,
            follows_execution: false,
            needs_session: NeedsSession::Never,
            may_conflict: false,
            is_recorded: true,
            reports_failure: |_| false,
            long_text: None,
            execution_links: &[],
            aliases: &[],
            maxima: Vec::new(),
        }
    }

    /// An operation that only REST has.
    pub fn endpoint(name: &'static str, title: &'static str, text: &'static str, route: (&'static str, &'static str)) -> Self {
        Self { is_tool: false, is_recorded: false, ..Self::tool(name, title, text, route) }
    }

    pub fn read_only(self) -> Self {
        Self { read_only: true, ..self }
    }

    /// HTTP's rule: PUT and DELETE may be repeated.
    pub fn is_idempotent(&self) -> bool {
        self.read_only || matches!(self.route.method, "PUT" | "DELETE")
    }
}

impl Deref for Operation {
    type Target = Description;

    fn deref(&self) -> &Description {
        &self.description
    }
}

/// An answer, and whether it reports something that still runs.
#[derive(Debug)]
pub struct Success {
    pub body: Value,
    pub pending: bool,
    /// The whole answer, if `body` is only its first page or the beginning of a long text.
    pub stream: Option<AnswerStream>,
}

impl Success {
    pub fn whole(body: Value) -> Self {
        Self { body, pending: false, stream: None }
    }
}

/// An error, and the body that goes with it.
#[derive(Debug)]
pub struct Failed {
    pub error: ServiceError,
    /// In the shape of the operation's answer; null if it has none for failures.
    pub body: Value,
}

/// The answer of operations that return nothing else.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Done {
    pub ok: bool,
    /// Why it failed, if `ok` is false.
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
    /// `target` does the work: each call gets a clone of it.
    pub fn new<D, P, A, F>(target: &D, description: Description, work: impl Fn(D, Caller, P) -> F + Send + Sync + 'static) -> Self
    where
        D: Clone + Send + Sync + 'static,
        P: DeserializeOwned + JsonSchema + Send + 'static,
        A: Serialize + JsonSchema,
        F: Future<Output = Result<A, ServiceError>> + Send + 'static,
    {
        Self::with_output(target, description, schema::output::<A>(), move |target, caller, parameters| {
            let answer = work(target, caller, parameters);
            async move { Ok(Pending { answer: answer.await?, pending: false }) }
        })
    }

    /// With an answer that may report something that still runs.
    pub fn with_output<D, P, A, F>(
        target: &D,
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
        Self::with_success(target, description, output, move |target, caller, parameters| {
            let answer = work(target, caller, parameters);
            async move {
                let Pending { answer, pending } = answer.await?;
                Ok(Success { pending, ..Success::whole(to_json(&answer)) })
            }
        })
    }

    /// Returns a list. A caller without a bound on messages gets it page by page while it is read.
    pub fn list<P, A, F>(
        service: &Service,
        description: Description,
        work: impl Fn(Service, Caller, P) -> F + Clone + Send + Sync + 'static,
    ) -> Self
    where
        P: Paged + DeserializeOwned + JsonSchema + Send + 'static,
        A: ListPage + JsonSchema + Send + 'static,
        F: Future<Output = Result<A, ServiceError>> + Send + 'static,
    {
        Self::with_success(service, description, schema::output::<A>(), move |service, caller, parameters| {
            let work = work.clone();
            async move {
                match caller.room {
                    Some(_) => Ok(Success::whole(to_json(&work(service, caller, parameters).await?))),
                    None => answer_stream::list(service, caller, parameters, work).await,
                }
            }
        })
    }

    /// Returns one long text. A caller without a bound on messages gets it part by part while it is read.
    pub fn long<P, A, F>(
        service: &Service,
        description: Description,
        output: Value,
        work: impl Fn(Service, Caller, P) -> F + Send + Sync + 'static,
    ) -> Self
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        A: LongAnswer + Send + 'static,
        F: Future<Output = Result<Pending<A>, ServiceError>> + Send + 'static,
    {
        Self::with_success(service, description, output, move |service, caller, parameters| {
            let caller = Caller { room: caller.room.or(Some(PageRoom::streamed())), ..caller };
            let answer = work(service.clone(), caller.clone(), parameters);
            async move {
                let Pending { answer, pending } = answer.await?;
                Ok(Success { pending, ..answer_stream::long_answer(&service, caller, &answer) })
            }
        })
    }

    fn with_success<D, P, F>(
        target: &D,
        description: Description,
        output: Value,
        work: impl Fn(D, Caller, P) -> F + Send + Sync + 'static,
    ) -> Self
    where
        D: Clone + Send + Sync + 'static,
        P: DeserializeOwned + JsonSchema + Send + 'static,
        F: Future<Output = Result<Success, ServiceError>> + Send + 'static,
    {
        let mut input = schema::input::<P>();
        for (parameter, maximum) in &description.maxima {
            input["properties"][parameter]["maximum"] = (*maximum).into();
        }
        let (parameters, failure) = (Arc::new(Parameters::new(description.name, &input)), description.failure);
        let (target, work) = (target.clone(), Arc::new(work));
        let handler = move |caller, arguments| -> Answer {
            let parsed = parameters.parse::<P>(arguments);
            let (target, work) = (target.clone(), work.clone());
            Box::pin(async move {
                let done = async { work(target, caller, parsed?).await };
                done.await.map_err(|error| Failed { body: failure.body(&error.to_string()), error })
            })
        };
        let of_alias = |alias: &Alias| Parameters::new(alias.name, &(alias.input)(input.clone()));
        let alias_parameters = description.aliases.iter().map(of_alias).collect();
        Self { description, input, output, alias_parameters, handler: Arc::new(handler) }
    }

    /// The same, with calls recorded in conversation contexts. This is the one place where that is done.
    pub fn recorded(self, service: &Service) -> Self {
        let (service, name, work) = (service.clone(), self.name, self.handler);
        let handler = move |caller: Caller, arguments: Arguments| -> Answer {
            let Some(recording) = service.contexts().begin_call(name, &caller, &arguments) else { return work(caller, arguments) };
            let answer = work(Caller { call: Some(recording.call()), ..caller }, arguments);
            Box::pin(async move {
                let answer = answer.await;
                match &answer {
                    Ok(success) => recording.answered(&success.body),
                    Err(failed) => recording.failed(&failed.error),
                }
                answer
            })
        };
        Self { handler: Arc::new(handler), ..self }
    }

    /// The same under another name, as lists show it.
    pub fn under(&self, alias: &Alias) -> Self {
        Self {
            description: Description { name: alias.name, ..self.description.clone() },
            input: (alias.input)(self.input.clone()),
            output: self.output.clone(),
            alias_parameters: self.alias_parameters.clone(),
            handler: self.handler.clone(),
        }
    }

    /// The arguments of an alias as the operation itself takes them. They are checked before, so that errors name the alias's parameters.
    pub fn translate(&self, alias: &Alias, arguments: Arguments) -> Result<Arguments, ServiceError> {
        let at = self.aliases.iter().position(|known| known.name == alias.name);
        let Some(parameters) = at.and_then(|at| self.alias_parameters.get(at)) else { return (alias.translate)(arguments) };
        parameters.check_names(&arguments)?;
        let translated = (alias.translate)(arguments.clone())?;
        parameters.parse::<Arguments>(arguments)?;
        Ok(translated)
    }

    /// Checks the arguments and does it.
    pub fn call(&self, caller: Caller, arguments: Arguments) -> impl Future<Output = Result<Success, Failed>> + Send + use<> {
        (self.handler)(caller, arguments)
    }
}

pub fn to_json(answer: &impl Serialize) -> Value {
    // Answers are structs of strings, numbers and maps of strings, which all have a JSON form.
    serde_json::to_value(answer).unwrap_or_default()
}
