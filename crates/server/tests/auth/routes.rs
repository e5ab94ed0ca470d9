//! Every route requires authentication, unless its content is the same for everyone. The routes come from the server's own table.

use crate::fixture::Server;
use crate::tokens::TokenFile;
use reqwest::{Method, Response};
use serde_json::{Value, json};

const OPEN: [&str; 5] = ["/", "/docs", "/docs/docs.js", "/docs/docs.css", "/api-doc/openapi.json"];

/// Method and path of every route.
async fn routes(server: &Server, mcp: &[(&str, &str)]) -> Vec<(Method, String)> {
    let (status, document) = server.get("/api-doc/openapi.json").await;
    assert_eq!(status, 200);
    let mut routes = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        let path = path.replace("{heap}", &"a".repeat(64)).replace(['{', '}'], "");
        for (method, operation) in methods.as_object().expect("methods") {
            assert_eq!(operation["responses"]["401"], json!({ "$ref": "#/components/responses/Unauthorized" }), "{method} {path}");
            routes.push((method.to_uppercase().parse().expect("a method"), path.clone()));
        }
    }
    assert!(routes.len() > 10, "{routes:?}");
    assert_eq!(document["security"], json!([{ "bearer": [] }]));
    // Undocumented routes are closed too.
    let further = [
        ("GET", "/nowhere"),
        ("POST", "/api/exec/../exec"),
        ("DELETE", "/api/exec"),
        ("HEAD", "/api/executions"),
        ("OPTIONS", "/api/exec"),
    ];
    routes.extend(mcp.iter().chain(&further).map(|(method, path)| (method.parse().expect("a method"), (*path).to_owned())));
    routes
}

async fn ask(server: &Server, method: &Method, path: &str, authorization: &[&str]) -> Response {
    let request =
        server.client.request(method.clone(), format!("{}{path}", server.url)).header("content-type", "application/json").body("{");
    authorization.iter().fold(request, |request, value| request.header("authorization", *value)).send().await.expect("an answer")
}

async fn check_refused(response: Response, what: &str, challenge: &str, detail: &str) {
    assert_eq!(response.status(), 401, "{what}");
    assert_eq!(response.headers()["www-authenticate"], challenge, "{what}");
    assert_eq!(response.headers()["content-type"], "application/problem+json", "{what}");
    if what.starts_with("HEAD") {
        return;
    }
    let body: Value = response.json().await.expect("JSON");
    assert_eq!(
        body,
        json!({ "type": "urn:heapstead:error:unauthenticated", "title": "Unauthorized", "status": 401, "detail": detail }),
        "{what}"
    );
}

async fn check_closed(server: &Server, mcp: &[(&str, &str)], token: &str) {
    const MISSING: &str = "credentials are missing: send the header `Authorization: Bearer TOKEN`";
    const INVALID: &str = "the credentials are not valid for this server, or have expired or been revoked";
    let good = format!("Bearer {token}");
    for (method, path) in routes(server, mcp).await {
        let what = format!("{method} {path}");
        for none in [&[][..], &["Basic YTpi"], &["Negotiate x"]] {
            check_refused(ask(server, &method, &path, none).await, &what, r#"Bearer realm="heapstead""#, MISSING).await;
        }
        for wrong in [&["Bearer x"][..], &["Bearer"], &["Bearer a b"], &[&good, &good]] {
            let challenge = r#"Bearer realm="heapstead", error="invalid_token""#;
            check_refused(ask(server, &method, &path, wrong).await, &what, challenge, INVALID).await;
        }
        // Tokens in URLs end up in logs, so they are not accepted there.
        let query = format!("{path}?access_token={token}");
        check_refused(ask(server, &method, &query, &[]).await, &what, r#"Bearer realm="heapstead""#, MISSING).await;
        assert_ne!(ask(server, &method, &path, &[&good.replace("Bearer", "bEARER")]).await.status(), 401, "{what}");
    }
}

#[tokio::test]
async fn every_route_requires_authentication() {
    let file = TokenFile::new();
    let (_, token) = file.add("acme/ann", &[]);
    let mcp = [("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp"), ("PUT", "/mcp")];
    check_closed(&file.server(&[]), &mcp, &token).await;
    check_closed(&file.server(&["--sse-port", "0"]), &[("GET", "/sse"), ("POST", "/message?sessionId=x")], &token).await;
    check_closed_when_stateless(&file, &token).await;
}

async fn check_closed_when_stateless(file: &TokenFile, token: &str) {
    let server = file.server(&["--stateless"]);
    for path in ["/api/exec", "/api/health", "/mcp"] {
        assert_eq!(ask(&server, &Method::POST, path, &[]).await.status(), 401, "{path}");
    }
    let run = server.client.post(format!("{}/api/exec", server.url)).bearer_auth(token).json(&json!({ "code": "console.log(1)" }));
    assert_eq!(run.send().await.expect("an answer").json::<Value>().await.expect("JSON"), json!({ "output": "1\n" }));
}

#[tokio::test]
async fn public_pages_are_open() {
    let file = TokenFile::new();
    file.add("acme/ann", &[]);
    let server = file.server(&[]);
    for path in OPEN {
        for authorization in [&[][..], &["Bearer wrong"]] {
            assert_eq!(ask(&server, &Method::GET, path, authorization).await.status(), 200, "{path}");
        }
    }
}

#[tokio::test]
async fn an_allowed_web_page_can_read_the_challenge() {
    let file = TokenFile::new();
    file.add("acme/ann", &[]);
    let server = file.server(&["--allowed-origins", "https://app.example"]);
    let asked = |method: Method| server.client.request(method, format!("{}/api/exec", server.url)).header("origin", "https://app.example");
    let preflight = asked(Method::OPTIONS)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization")
        .send()
        .await
        .expect("an answer");
    assert_eq!((preflight.status().as_u16(), preflight.headers()["access-control-allow-headers"].as_bytes()), (204, &b"authorization"[..]));
    let refused = asked(Method::POST).json(&json!({ "code": "1" })).send().await.expect("an answer");
    assert_eq!(refused.status(), 401);
    assert_eq!(refused.headers()["access-control-allow-origin"], "https://app.example");
    let exposed = refused.headers()["access-control-expose-headers"].to_str().expect("text");
    assert!(exposed.contains("WWW-Authenticate"), "{exposed}");
}

#[tokio::test]
async fn a_valid_token_runs_code() {
    let file = TokenFile::new();
    let (_, token) = file.add("acme/ann", &[]);
    let server = file.server(&[]);
    let run = server.client.post(format!("{}/api/exec", server.url)).bearer_auth(&token);
    let record: Value = run.json(&json!({ "code": "6 * 7", "wait_secs": 60 })).send().await.expect("an answer").json().await.expect("JSON");
    assert_eq!(record["result"], "42", "{record}");
}
