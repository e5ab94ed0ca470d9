//! Refused requests: problem documents, methods, media types, hosts and origins.

use crate::fixture::{Folders, Server};
use heapstead_types::ErrorCode;
use reqwest::{Method, Response};
use serde_json::{Value, json};

/// Asserts that a response is a problem document with this status, and returns its detail.
async fn problem(response: Response, status: u16) -> String {
    assert_eq!(response.status(), status);
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let title = response.status().canonical_reason().expect("a reason").to_owned();
    let document: Value = response.json().await.expect("JSON");
    assert_eq!((&document["title"], &document["status"]), (&json!(title), &json!(status)));
    let code = document["type"].as_str().and_then(|kind| kind.strip_prefix("urn:heapstead:error:")).expect("a type");
    assert!(ErrorCode::from_name(code).is_some(), "{document}");
    document["detail"].as_str().expect("a detail").to_owned()
}

#[tokio::test]
async fn every_refusal_is_a_problem_document() {
    let server = Server::start();
    let request = |method: Method, path: &str| server.client.request(method, format!("{}{path}", server.url));
    let send = async |request: reqwest::RequestBuilder| request.send().await.expect("an answer");

    problem(send(request(Method::GET, "/nothing")).await, 404).await;
    problem(send(request(Method::GET, "/api/executions/unknown")).await, 404).await;
    problem(send(request(Method::GET, &format!("/api/executions/{}", "0".repeat(32)))).await, 404).await;
    let detail = problem(send(request(Method::GET, &format!("/api/executions/{}/events", "0".repeat(32)))).await, 404).await;
    assert_eq!(detail, format!("execution `{}` is not known", "0".repeat(32)));

    let wrong_method = send(request(Method::PATCH, "/api/heaps")).await;
    assert_eq!(wrong_method.headers()["allow"].to_str().expect("text").split(',').collect::<Vec<_>>().len(), 3, "GET, HEAD, POST");
    problem(wrong_method, 405).await;

    problem(send(request(Method::GET, "/api/health").header("accept", "text/html")).await, 406).await;
    problem(
        send(request(Method::GET, &format!("/api/executions/{}/events", "0".repeat(32))).header("accept", "application/json")).await,
        406,
    )
    .await;
    for accept in ["application/json", "*/*", "text/html, application/*;q=0.1"] {
        assert_eq!(send(request(Method::GET, "/api/health").header("accept", accept)).await.status(), 200, "{accept}");
    }

    for content_type in ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "application/xml"] {
        let posted = request(Method::POST, "/api/exec").header("content-type", content_type).body(r#"{"code": "1"}"#);
        problem(send(posted).await, 415).await;
    }
    problem(send(request(Method::POST, "/api/exec").body(r#"{"code": "1"}"#)).await, 415).await;
    // Content types that any web page could send, also where no body is needed.
    for content_type in ["text/plain", "Text/Plain;charset=UTF-8", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
        for path in ["/api/sessions", "/api/heaps", "/mcp", &format!("/api/executions/{}/cancel", "0".repeat(32))] {
            problem(send(request(Method::POST, path).header("content-type", content_type)).await, 415).await;
        }
    }
    let zipped = request(Method::POST, "/api/exec").header("content-encoding", "gzip").header("content-type", "application/json").body("x");
    problem(send(zipped).await, 415).await;

    let detail = problem(send(request(Method::POST, "/api/exec?code=1").json(&json!({ "code": "1" }))).await, 400).await;
    assert_eq!(detail, "`code` is in the query: this method takes its arguments in the body");
    let id = "0".repeat(32);
    let detail =
        problem(send(request(Method::POST, &format!("/api/executions/{id}/cancel")).json(&json!({ "execution_id": id }))).await, 400).await;
    assert_eq!(detail, "`execution_id` is given twice");
    let detail = problem(send(request(Method::GET, &format!("/api/executions/{id}/events?from=1"))).await, 400).await;
    assert_eq!(detail, "`from` is not a parameter of this endpoint, which takes none");
}

#[tokio::test]
async fn invalid_json_bodies_are_refused() {
    let server = Server::start();
    let deep = format!("{{\"code\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let many = format!("{{\"code\": [{}1]}}", "1,".repeat(100_000));
    for (body, expected) in [
        (br#"{"code": "1", "code": "2"}"#.to_vec(), "`code` is given twice at line 1 column 20"),
        (br#"{"code": "1", "tags": {"a": "1", "a": "2"}}"#.to_vec(), "`a` is given twice"),
        (b"{\"code\": \"\xc3\x28\"}".to_vec(), "the body is not UTF-8: byte 10 is not valid"),
        (br#"{"code": "\ud800"}"#.to_vec(), "the body is not valid JSON"),
        (deep.into_bytes(), "nested more than 40 deep"),
        (many.into_bytes(), "more than 10000 values"),
        (br#"{"code": "1"} {"code": "2"}"#.to_vec(), "trailing characters"),
        (br#"{"code": "1""#.to_vec(), "EOF while parsing"),
        (b"[1]".to_vec(), "not a JSON object"),
        (b"null".to_vec(), "not a JSON object"),
        (b"\xef\xbb\xbf{}".to_vec(), "not valid JSON"),
        (br#"{"code": NaN}"#.to_vec(), "not valid JSON"),
        (Vec::new(), "`code` is missing"),
    ] {
        let request = server.client.post(format!("{}/api/exec", server.url)).header("content-type", "application/json").body(body);
        let detail = problem(request.send().await.expect("an answer"), 400).await;
        assert!(detail.contains(expected), "{detail}\ndoes not contain\n{expected}");
    }
}

#[tokio::test]
async fn a_source_of_16_mib_is_accepted_with_any_escaping() {
    let server = Server::start();
    let comment = "\\u0020".repeat((16 << 20) - 1);
    let body = format!("{{\"code\": \"{comment}7\", \"wait_secs\": 60}}");
    let request = server.client.post(format!("{}/api/exec", server.url)).header("content-type", "application/json").body(body);
    let record: Value = request.send().await.expect("an answer").json().await.expect("JSON");
    assert_eq!(record["result"], "7", "{}", record["error"]);
}

#[tokio::test]
async fn a_source_past_16_mib_is_too_large() {
    let server = Server::start();
    let (status, problem) = server.post("/api/exec", json!({ "code": " ".repeat(16 << 20) + "7" })).await;
    assert_eq!((status, &problem["title"]), (413, &json!("Payload Too Large")), "{problem}");
    assert_eq!(problem["detail"], "`code` is 16777217 bytes: at most 16777216 bytes are allowed");
    assert_eq!(server.get("/api/executions").await.1["executions"], json!([]), "nothing ran");
}

/// Operations whose result has `ok` include it also if their arguments are malformed.
#[tokio::test]
async fn operations_with_ok_include_it_in_every_error() {
    let server = Server::start();
    let (tags, cancel) = (format!("/api/heaps/{}/tags", "0".repeat(64)), format!("/api/executions/{}/cancel", "0".repeat(32)));
    for (method, path, content_type, body, status) in [
        (Method::PUT, tags.as_str(), "application/json", "{", 400),
        (Method::PUT, &tags, "application/xml", "{}", 415),
        (Method::DELETE, &format!("{tags}?keys=%ff"), "application/json", "", 400),
        (Method::POST, "/api/heaps/query", "application/json", "[]", 400),
        (Method::POST, &cancel, "application/json", "{", 400),
        (Method::POST, &cancel, "application/xml", "{}", 415),
        (Method::POST, &cancel, "application/json", "{}", 404),
    ] {
        let request = server.client.request(method, format!("{}{path}", server.url)).header("content-type", content_type).body(body);
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), status, "{path}");
        let problem: Value = response.json().await.expect("JSON");
        assert_eq!((&problem["ok"], &problem["error"]), (&json!(false), &problem["detail"]), "{path}: {problem}");
    }
    let (_, problem) = server.get("/api/executions/unknown").await;
    assert_eq!((problem.get("ok"), problem.get("error")), (None, None), "{problem}");
}

#[tokio::test]
async fn only_allowed_hosts_and_origins_are_accepted() {
    let server = Server::start_with(
        &Folders::new(),
        &["--allowed-origins", "https://app.example", "--allowed-hosts", "localhost,127.0.0.1,api.example"],
    );
    let send = async |method: Method, headers: &[(&str, &str)]| {
        let request = server.client.request(method, format!("{}/api/health", server.url));
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value)).send().await.expect("an answer")
    };
    for host in ["localhost", "localhost:1", "127.0.0.1:99", "API.example"] {
        assert_eq!(send(Method::GET, &[("host", host)]).await.status(), 200, "{host}");
    }
    for host in ["evil.example", "localhost.evil.example", "127.0.0.2", "[::1]"] {
        let detail = problem(send(Method::GET, &[("host", host)]).await, 403).await;
        assert_eq!(detail, format!("requests to the host `{host}` are refused: it is not in `--allowed-hosts`"));
    }
    for origin in ["http://evil.example", "null", "https://app.example.evil", "http://app.example", "http://127.0.0.1:1"] {
        let refused = send(Method::POST, &[("origin", origin)]).await;
        assert_eq!(refused.headers().get("access-control-allow-origin"), None);
        problem(refused, 403).await;
    }
    let allowed = send(Method::GET, &[("origin", "https://app.example")]).await;
    assert_eq!(
        (allowed.status().as_u16(), &allowed.headers()["access-control-allow-origin"]),
        (200, &"https://app.example".parse().expect("a value"))
    );
    assert_eq!(allowed.headers()["vary"], "origin");
    let asked =
        [("origin", "https://app.example"), ("access-control-request-method", "POST"), ("access-control-request-headers", "content-type")];
    let preflight = send(Method::OPTIONS, &asked).await;
    assert_eq!(preflight.status(), 204);
    assert_eq!(preflight.headers()["access-control-allow-headers"], "content-type");
    assert!(preflight.headers()["access-control-allow-methods"].to_str().expect("text").contains("POST"));
    let own = send(Method::GET, &[("origin", &server.url)]).await;
    assert_eq!((own.status().as_u16(), own.headers().get("access-control-allow-origin")), (200, None), "our own pages");
    assert_eq!(send(Method::GET, &[]).await.headers().get("access-control-allow-origin"), None);
}

#[tokio::test]
async fn a_full_queue_returns_429_with_retry_after() {
    let server = Server::start_with(&Folders::new(), &["--max-concurrent-executions", "1", "--max-queued", "3"]);
    let code = "await new Promise((done) => setTimeout(done, 60_000))";
    let mut ids = Vec::new();
    let refused = loop {
        let response =
            server.client.post(format!("{}/api/exec", server.url)).json(&json!({ "code": code })).send().await.expect("an answer");
        if response.status() != 202 {
            break response;
        }
        ids.push(response.json::<Value>().await.expect("JSON")["execution_id"].as_str().expect("an id").to_owned());
        assert!(ids.len() <= 4, "one runs, three wait");
    };
    assert_eq!(ids.len(), 4);
    assert!(refused.headers()["retry-after"].to_str().expect("text").parse::<u32>().expect("seconds") >= 1);
    let detail = problem(refused, 429).await;
    assert!(detail.contains("the queue is full, 3 of your executions are waiting in it"), "{detail}");
    for id in ids {
        assert_eq!(server.post(&format!("/api/executions/{id}/cancel"), json!({})).await.0, 200);
    }
    assert_eq!(server.run("1").await["status"], "completed", "the queue accepts runs again");
}
