//! Executions, outputs and results as MCP resources.

use crate::fixture::Server;
use crate::peer::{Http, result};
use serde_json::{Value, json};
use std::collections::HashSet;

async fn read(client: &Http, uri: &str) -> Value {
    result(client.ask("resources/read", json!({ "uri": uri })).await)["contents"][0].clone()
}

#[tokio::test]
async fn records_outputs_and_results_are_read_by_uri() {
    let server = Server::start();
    for client in [Http::connect(&server, "2025-06-18", &[]).await, Http::modern(&server, &[])] {
        let record =
            client.call("run_js", json!({ "code": "console.log('é'); ({ a: 1 })", "wait_secs": 60 })).await["structuredContent"].clone();
        let uri = format!("heapstead://executions/{}", record["execution_id"].as_str().expect("an id"));
        let contents = read(&client, &uri).await;
        assert_eq!((&contents["uri"], &contents["mimeType"]), (&json!(uri), &json!("application/json")));
        assert_eq!(serde_json::from_str::<Value>(contents["text"].as_str().expect("text")).expect("JSON"), record);
        let contents = read(&client, &format!("{uri}/output")).await;
        assert_eq!((&contents["text"], &contents["mimeType"]), (&json!("é\n"), &json!("text/plain")));
        let contents = read(&client, &format!("{uri}/result")).await;
        assert_eq!((&contents["text"], &contents["mimeType"]), (&json!(r#"{"a":1}"#), &json!("application/json")));

        let templates = result(client.ask("resources/templates/list", json!({})).await);
        let templates: Vec<_> =
            templates["resourceTemplates"].as_array().expect("templates").iter().map(|one| one["uriTemplate"].clone()).collect();
        let of_executions = ["", "/output{?byte_offset}", "/result{?byte_offset}"]
            .map(|path| json!(format!("heapstead://executions/{{execution_id}}{path}")));
        assert_eq!(templates[..3], of_executions);
        assert_eq!(templates[3..], ["heapstead://sessions/{session_id}/head"]);
    }
}

#[tokio::test]
async fn missing_resources_are_errors() {
    let server = Server::start();
    let older = Http::connect(&server, "2025-11-25", &[]).await;
    let newer = Http::modern(&server, &[]);
    let failed = older.call("run_js", json!({ "code": "null.x", "wait_secs": 60 })).await;
    let id = failed["structuredContent"]["execution_id"].as_str().expect("an id");
    let without_result = format!("heapstead://executions/{id}/result");
    for uri in ["heapstead://executions/nobody", "heapstead://executions/nobody/output", "file:///etc/passwd", &without_result] {
        let answer = older.ask("resources/read", json!({ "uri": uri })).await;
        assert_eq!((&answer["error"]["code"], &answer["error"]["data"]["uri"]), (&json!(-32002), &json!(uri)), "{answer}");
        assert_eq!(newer.ask("resources/read", json!({ "uri": uri })).await["error"]["code"], -32602, "{uri}");
    }
    let answer = older.ask("resources/read", json!({ "uri": without_result })).await;
    assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("it is failed")), "{answer}");
}

#[tokio::test]
async fn long_output_continues_from_the_returned_cursor() {
    let server = Server::start();
    let client = Http::modern(&server, &[]);
    let code = "const line = 'é'.repeat(500_000); for (let i = 0; i < 9; i++) console.log(line)";
    let record = client.call("run_js", json!({ "code": code, "wait_secs": 60 })).await["structuredContent"].clone();
    let mut uri = Some(format!("heapstead://executions/{}/output", record["execution_id"].as_str().expect("an id")));
    let (mut text, mut pages) = (String::new(), 0);
    while let Some(next) = uri {
        let contents = read(&client, &next).await;
        text += contents["text"].as_str().expect("text");
        uri = contents["_meta"]["heapstead/next"].as_str().map(str::to_owned);
        pages += 1;
    }
    assert_eq!(pages, 11, "each as long as a message can be");
    assert_eq!(text, format!("{}\n", "é".repeat(500_000)).repeat(9));
}

#[tokio::test]
async fn executions_are_listed_page_by_page() {
    let server = Server::start();
    let client = Http::connect(&server, "2025-11-25", &[]).await;
    let begin = |_| client.call("run_js", json!({ "code": "1" }));
    let begun = futures_util::future::join_all((0..130).map(begin)).await;
    let begun: HashSet<_> = begun
        .iter()
        .map(|answer| format!("heapstead://executions/{}", answer["structuredContent"]["execution_id"].as_str().expect("an id")))
        .collect();
    let (mut listed, mut cursor, mut pages) = (HashSet::new(), None, 0);
    loop {
        let params = cursor.map_or(json!({}), |cursor: Value| json!({ "cursor": cursor }));
        let page = result(client.ask("resources/list", params).await);
        for resource in page["resources"].as_array().expect("resources") {
            assert_eq!(resource["mimeType"], "application/json");
            assert!(listed.insert(resource["uri"].as_str().expect("an address").to_owned()), "twice: {resource}");
        }
        pages += 1;
        match page.get("nextCursor") {
            Some(next) => cursor = Some(next.clone()),
            None => break,
        }
    }
    assert_eq!((listed, pages), (begun, 2));
    assert_eq!(client.ask("resources/list", json!({ "cursor": "nonsense" })).await["error"]["code"], -32602);
}
