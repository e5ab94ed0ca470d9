//! A caller over one transport, which sees the whole response: status, headers and body.

use crate::client::LEGACY;
use crate::fixture::Folders;
use crate::owners::{Owner, TestServers};
use crate::peer::{Http, Sse, Stdio, modern};
use crate::rows::Ask;
use serde_json::{Map, Value, json};

/// The id of every request, so that responses can be compared.
const ID: u64 = 7;

/// Fields that differ between two responses to the same request.
const VARYING_FIELDS: [&str; 12] = [
    "execution_id",
    "started_at",
    "completed_at",
    "timestamp",
    "taskId",
    "createdAt",
    "lastUpdatedAt",
    "last_used_at",
    // In the context of a log that the caller created itself by naming it.
    "created_at",
    "last_updated_at",
    "called_at",
    "session_id",
];

pub enum Caller {
    Rest {
        owner: Owner,
        routes: Routes,
    },
    /// Over Streamable HTTP with a connection.
    Legacy(Http),
    /// Over Streamable HTTP of 2026-07-28.
    Modern(Http),
    Sse(Box<Sse>, Option<String>),
    /// The caller is the local owner.
    Stdio(Box<Stdio>),
    /// Stdio with 2026-07-28.
    ModernStdio(Box<Stdio>),
}

/// Method and path of every operation, from the server's OpenAPI document.
#[derive(Clone)]
pub struct Routes(Vec<(String, String, String)>);

impl Routes {
    pub async fn of(owner: &Owner) -> Self {
        let document = owner.get("/api-doc/openapi.json").await;
        let mut routes = Vec::new();
        for (path, methods) in document["paths"].as_object().expect("paths") {
            for (method, operation) in methods.as_object().expect("methods") {
                let name = operation["operationId"].as_str().expect("a name").to_owned();
                routes.push((name, method.to_uppercase(), path.clone()));
            }
        }
        Self(routes)
    }

    pub fn operations(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, ..)| name.as_str())
    }

    /// The operation for a method and a path.
    pub fn operation_at(&self, asked_method: &str, asked_path: &str) -> Option<&str> {
        let fits = |path: &str| {
            let (asked, path): (Vec<_>, Vec<_>) = (asked_path.split('/').collect(), path.split('/').collect());
            asked.len() == path.len() && asked.iter().zip(&path).all(|(asked, part)| part.starts_with('{') || asked == part)
        };
        self.0.iter().find(|(_, method, path)| method == asked_method && fits(path)).map(|(name, ..)| name.as_str())
    }

    fn ask(&self, operation: &str, arguments: &Value) -> (String, String, Option<Value>) {
        let (_, method, path) = self.0.iter().find(|(name, ..)| name == operation).unwrap_or_else(|| panic!("{operation} has a route"));
        let (mut path, mut left) = (path.clone(), arguments.as_object().cloned().unwrap_or_default());
        for (name, value) in arguments.as_object().into_iter().flatten() {
            let placeholder = format!("{{{name}}}");
            if path.contains(&placeholder) {
                path = path.replace(&placeholder, &plain(value));
                left.remove(name);
            }
        }
        if method == "GET" || method == "DELETE" {
            let query: Vec<_> = left.iter().map(|(name, value)| format!("{name}={}", plain(value).replace(' ', "%20"))).collect();
            let path = if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) };
            return (method.clone(), path, None);
        }
        (method.clone(), path, Some(Value::Object(left)))
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl Caller {
    pub async fn rest(owner: &Owner) -> Self {
        Self::Rest { owner: owner.clone(), routes: Routes::of(owner).await }
    }

    /// An owner on every HTTP transport.
    pub async fn all_of(servers: &TestServers, owner: &Owner) -> Vec<Self> {
        let authorization = owner.authorization();
        let headers: Vec<_> = authorization.iter().map(|value| ("authorization", value.as_str())).collect();
        let mut sse = Sse::open_with(servers.sse_server(owner), &headers).await;
        sse.initialize(LEGACY).await;
        vec![
            Self::rest(owner).await,
            Self::Legacy(Http::connect(servers.server(owner), LEGACY, &headers).await),
            Self::Modern(Http::modern(servers.server(owner), &headers)),
            Self::Sse(Box::new(sse), authorization),
        ]
    }

    /// A local user with its own stdio server, in both protocol versions.
    pub async fn local(folders: &Folders) -> [Self; 2] {
        let quiet = ["--log", "error"];
        [Self::Stdio(Box::new(Stdio::connect(folders, LEGACY, &quiet).await)), Self::ModernStdio(Box::new(Stdio::start(folders, &quiet)))]
    }

    pub fn way(&self) -> &'static str {
        match self {
            Self::Rest { .. } => "REST",
            Self::Legacy(_) => "MCP over HTTP",
            Self::Modern(_) => "MCP of 2026-07-28",
            Self::Sse(..) => "MCP over SSE",
            Self::Stdio(_) => "MCP over stdio",
            Self::ModernStdio(_) => "MCP of 2026-07-28 over stdio",
        }
    }

    /// The visible response. `None` if the request is not possible on this transport.
    pub async fn ask(&mut self, ask: &Ask) -> Option<String> {
        if let Self::Rest { owner, routes } = self {
            return rest(owner, routes, ask).await;
        }
        let (method, mut params, headers) = match ask.clone() {
            Ask::Operation(name, arguments) => ("tools/call", json!({ "name": name, "arguments": arguments }), Vec::new()),
            Ask::Headed(name, arguments, headers) => ("tools/call", json!({ "name": name, "arguments": arguments }), headers),
            Ask::Method(method, params) => (method, params, Vec::new()),
            Ask::In(session, method, mut params) => {
                params["_meta"] = json!({ self.key(): { "sessionId": session } });
                (method, params, Vec::new())
            }
            Ask::Route { .. } => return None,
        };
        if params.is_null() {
            params = Value::Object(Map::new());
        }
        let message = json!({ "jsonrpc": "2.0", "id": ID, "method": method, "params": params });
        match self {
            Self::Legacy(http) | Self::Modern(http) => {
                let mut http = http.clone();
                http.headers.extend(headers);
                Some(whole(http.send(&message).await).await)
            }
            Self::Sse(sse, authorization) => {
                let authorization = authorization.iter().map(|value| ("authorization", value.as_str()));
                let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).chain(authorization).collect();
                assert_eq!(sse.post(&message, &headers).await, 202);
                Some(masked(&sse.answer_to(&json!(ID)).await.to_string()))
            }
            Self::Stdio(stdio) => Some(masked(&stdio.answer(&message).await.to_string())),
            Self::ModernStdio(stdio) => Some(masked(&stdio.answer(&modern(message, json!({}))).await.to_string())),
            Self::Rest { .. } => None,
        }
    }

    fn key(&self) -> &'static str {
        if matches!(self, Self::Modern(_) | Self::ModernStdio(_)) { "dev.heapstead/session" } else { "io.modelcontextprotocol/session" }
    }
}

async fn rest(owner: &Owner, routes: &Routes, ask: &Ask) -> Option<String> {
    let (method, path, headers, body) = match ask.clone() {
        Ask::Operation(operation, arguments) => {
            let (method, path, body) = routes.ask(operation, &arguments);
            (method, path, Vec::new(), body)
        }
        Ask::Headed(operation, arguments, headers) => {
            let (method, path, body) = routes.ask(operation, &arguments);
            (method, path, headers, body)
        }
        Ask::Route { method, path, headers, body } => (method.to_owned(), path, headers, body),
        Ask::Method(..) | Ask::In(..) => return None,
    };
    let request = headers.into_iter().fold(owner.request(&method, &path), |request, (name, value)| request.header(name, value));
    let request = body.into_iter().fold(request, |request, body| request.json(&body));
    Some(whole(request.send().await.expect("an answer")).await)
}

/// The whole response except its date.
async fn whole(response: reqwest::Response) -> String {
    let headers = response.headers().iter().filter(|(name, _)| *name != "date");
    let mut headers: Vec<_> = headers.map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes()))).collect();
    headers.sort();
    let status = response.status();
    let body = response.bytes().await.expect("a body");
    // Event ids of a connection are numbered.
    let text = String::from_utf8_lossy(&body);
    let body: Vec<_> = text.split('\n').filter(|line| !line.starts_with("id: 0/")).collect();
    masked(&format!("{status}\n{}\n\n{}", headers.join("\n"), body.join("\n")))
}

/// Replaces the fields that always differ. Each of them has a fixed length.
fn masked(text: &str) -> String {
    let mut text = text.to_owned();
    for name in VARYING_FIELDS {
        for before in [format!("\"{name}\":\""), format!("\\\"{name}\\\":\\\"")] {
            let mut from = 0;
            while let Some(at) = text[from..].find(&before) {
                let start = from + at + before.len();
                let end = start + text[start..].find(['"', '\\']).unwrap_or(0);
                text.replace_range(start..end, "*");
                from = start;
            }
        }
    }
    // Times of the caller's own earlier calls in the summary of a context.
    let mut parts = text.split("earlier tool calls (");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "earlier tool calls (*" + part.find(')').map_or(part, |end| &part[end..]))
}

#[test]
fn varying_fields_are_masked() {
    let text = r#"{"execution_id":"0f","text":"{\"started_at\":\"2026\",\"x\":1}"}"#;
    assert_eq!(masked(text), r#"{"execution_id":"*","text":"{\"started_at\":\"*\",\"x\":1}"}"#);
}
