//! Tools: their descriptions, and the two forms of every result.

use crate::fixture::{Folders, Server};
use crate::peer::{Http, Stdio, request, result};
use serde_json::{Value, json};

async fn tools(client: &Http) -> Vec<Value> {
    result(client.ask("tools/list", json!({})).await)["tools"].as_array().cloned().expect("tools")
}

#[tokio::test]
async fn tools_have_descriptions_schemas_and_annotations() {
    let server = Server::start();
    let client = Http::connect(&server, "2025-11-25", &[]).await;
    let tools = tools(&client).await;
    let hints = |name: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("{name} is missing"));
        assert!(tool["title"].is_string() && tool["description"].as_str().is_some_and(|text| text.len() > 40), "{tool}");
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert_eq!(tool["outputSchema"]["type"], "object");
        let hint = |hint: &str| tool["annotations"][hint].as_bool().expect("a hint");
        assert!(!hint("openWorldHint"));
        (hint("readOnlyHint"), hint("destructiveHint"), hint("idempotentHint"))
    };
    for name in [
        "get_execution",
        "get_execution_output",
        "list_executions",
        "get_heap_tags",
        "query_heaps_by_tags",
        "list_sessions",
        "health_check",
    ] {
        assert_eq!(hints(name), (true, false, true), "{name}");
    }
    assert_eq!(hints("run_js"), (false, false, false));
    assert_eq!(hints("cancel_execution"), (false, true, false));
    assert_eq!(hints("set_heap_tags"), (false, true, true));
    assert_eq!(hints("delete_heap_tags"), (false, true, true));
    assert!(hints("list_session_snapshots").0);
}

/// Checks that the text is the same JSON as the structured content, and returns it.
fn both(answer: &Value) -> &Value {
    let text = answer["content"][0]["text"].as_str().expect("text");
    assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), answer["structuredContent"], "{answer}");
    &answer["structuredContent"]
}

#[tokio::test]
async fn text_and_structured_content_are_the_same() {
    let server = Server::start();
    for client in [Http::connect(&server, "2025-06-18", &[]).await, Http::modern(&server, &[])] {
        let answer = client.call("run_js", json!({ "code": "({ a: [1, 'é'] })", "wait_secs": 60 })).await;
        assert_eq!(answer["isError"], false);
        assert_eq!(both(&answer)["result"], r#"{"a":[1,"é"]}"#);
        let begun = client.call("run_js", json!({ "code": "1" })).await;
        let id = both(&begun)["execution_id"].clone();
        assert_eq!(begun["structuredContent"], json!({ "execution_id": id }));
        let record = client.call("get_execution", json!({ "execution_id": id, "wait_secs": 60 })).await;
        assert_eq!(both(&record)["status"], "completed");
    }
}

#[tokio::test]
async fn failures_are_tool_errors_with_a_reason() {
    let server = Server::start();
    let client = Http::connect(&server, "2025-11-25", &[]).await;
    let refused = |arguments: Value| {
        let client = client.clone();
        async move {
            let answer = client.call("run_js", arguments).await;
            assert_eq!(answer["isError"], true, "{answer}");
            assert!(answer.get("structuredContent").is_none(), "{answer}");
            answer["content"][0]["text"].as_str().expect("text").to_owned()
        }
    };
    for (arguments, named) in [
        (json!({}), "`code`"),
        (json!({ "code": "" }), "`code`"),
        (json!({ "code": "1", "execution_timeout_secs": 0 }), "`execution_timeout_secs` is 0"),
        (json!({ "code": "1", "heap": "ABC" }), "`heap` is `ABC`"),
        (json!({ "code": "1", "tags": { "a": 1 } }), "`tags`"),
        (json!({ "code": "1", "wait_secs": 301 }), "`wait_secs` is 301"),
        (json!({ "code": "1", "colour": "red" }), "`colour` is not a parameter of run_js"),
    ] {
        let text = refused(arguments).await;
        assert!(text.contains(named), "{text}");
    }
    let answer = client.call("cancel_execution", json!({ "execution_id": "nobody" })).await;
    assert_eq!(answer["isError"], true);
    assert_eq!(both(&answer)["ok"], false);
    assert!(both(&answer)["error"].as_str().is_some_and(|error| error.contains("nobody")), "{answer}");
    // Code that fails has an execution with a record, and the call has an error result.
    let answer = client.call("run_js", json!({ "code": "let x = ;", "wait_secs": 60 })).await;
    assert_eq!(answer["isError"], true);
    assert_eq!(both(&answer)["status"], "failed");
    let asked = client.call("get_execution", json!({ "execution_id": answer["structuredContent"]["execution_id"] })).await;
    assert_eq!(asked["isError"], false);
    assert_eq!(both(&asked), &answer["structuredContent"]);
}

#[tokio::test]
async fn tag_tools_return_ok_or_an_error() {
    let server = Server::start();
    let client = Http::connect(&server, "2025-11-25", &[]).await;
    let heap = "a".repeat(64);
    let done = client.call("set_heap_tags", json!({ "heap": heap, "tags": { "project": "x", "step": "1" } })).await;
    assert_eq!((&done["isError"], both(&done)), (&json!(false), &json!({ "ok": true })));
    let found = client.call("query_heaps_by_tags", json!({ "tags": { "project": "x" } })).await;
    assert_eq!(both(&found)["results"], json!([{ "heap": heap, "tags": { "project": "x", "step": "1" } }]));
    let done = client.call("delete_heap_tags", json!({ "heap": heap, "keys": "step" })).await;
    assert_eq!((&done["isError"], both(&done)), (&json!(false), &json!({ "ok": true })));
    let tags = client.call("get_heap_tags", json!({ "heap": heap })).await;
    assert_eq!((&tags["isError"], both(&tags)), (&json!(false), &json!({ "tags": { "project": "x" } })));
    for (tool, arguments, named) in [
        ("get_heap_tags", json!({ "heap": "ABC" }), "`heap` is `ABC`"),
        ("get_heap_tags", json!({}), "`heap`"),
        ("set_heap_tags", json!({ "heap": "ABC", "tags": {} }), "`heap` is `ABC`"),
        ("set_heap_tags", json!({ "heap": heap, "tags": { "a": 1 } }), "`tags`"),
        ("set_heap_tags", json!({ "heap": heap, "tags": { "": "x" } }), "`tags`"),
        ("set_heap_tags", json!({ "heap": heap, "tags": { "a": "x".repeat(1025) } }), "`tags`"),
        ("set_heap_tags", json!({ "heap": heap }), "`tags`"),
        ("delete_heap_tags", json!({ "heap": "ABC" }), "`heap` is `ABC`"),
        ("delete_heap_tags", json!({ "heap": heap, "colour": "red" }), "`colour`"),
        ("query_heaps_by_tags", json!({ "tags": "x" }), "`tags`"),
        ("query_heaps_by_tags", json!({ "tags": {}, "limit": 0 }), "`limit` is 0"),
    ] {
        let answer = client.call(tool, arguments.clone()).await;
        assert_eq!(answer["isError"], true, "{tool} {arguments}: {answer}");
        let body = both(&answer);
        assert_eq!(body["ok"], false, "{tool} {arguments}: {answer}");
        assert!(body["error"].as_str().is_some_and(|error| error.contains(named)), "{tool} {arguments}: {answer}");
    }
    let tags = client.call("get_heap_tags", json!({ "heap": heap })).await;
    assert_eq!(both(&tags), &json!({ "tags": { "project": "x" } }), "nothing that was refused has changed anything");
}

#[tokio::test]
async fn unknown_tools_and_methods_are_protocol_errors() {
    let server = Server::start();
    for client in [Http::connect(&server, "2025-11-25", &[]).await, Http::modern(&server, &[])] {
        let answer = client.ask("tools/call", json!({ "name": "rm", "arguments": {} })).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("`rm`") && text.contains("run_js")), "{answer}");
        assert_eq!(client.ask("tools/call", json!({ "name": "run_js", "arguments": [] })).await["error"]["code"], -32602);
        for method in ["prompts/list", "completion/complete", "no/such"] {
            let params = json!({ "ref": { "type": "ref/prompt", "name": "x" }, "argument": { "name": "a", "value": "b" } });
            assert_eq!(client.ask(method, params).await["error"]["code"], -32601, "{method}");
        }
    }
}

#[tokio::test]
async fn max_inline_chars_limits_the_text() {
    let server = Server::start_with(&Folders::new(), &["--max-inline-chars", "1000"]);
    let client = Http::connect(&server, "2025-11-25", &[]).await;
    let answer = client.call("run_js", json!({ "code": "'é'.repeat(50_000)", "wait_secs": 60 })).await;
    let record = &answer["structuredContent"];
    assert_eq!(record["result"].as_str().map(|text| text.chars().count()), Some(50_002));
    let text = answer["content"][0]["text"].as_str().expect("text");
    assert!((900..=1000).contains(&text.chars().count()), "{text}");
    let shown: Value = serde_json::from_str(text).expect("still JSON");
    assert_eq!(shown["heap"], record["heap"]);
    let uri = format!("heapstead://executions/{}/result", record["execution_id"].as_str().expect("an id"));
    assert!(shown["rest"].as_str().is_some_and(|rest| rest.contains(&uri)), "{shown}");
    assert_eq!((&answer["content"][1]["type"], &answer["content"][1]["uri"]), (&json!("resource_link"), &json!(uri)));
    let read = result(client.ask("resources/read", json!({ "uri": uri })).await);
    assert_eq!(read["contents"][0]["text"], record["result"]);

    let begun = client.call("run_js", json!({ "code": "for (let i = 0; i < 1000; i++) console.log('line', i)", "wait_secs": 60 })).await;
    let id = &begun["structuredContent"]["execution_id"];
    let page = client.call("get_execution_output", json!({ "execution_id": id, "line_limit": 500 })).await;
    assert!(page["content"][0]["text"].as_str().is_some_and(|text| text.chars().count() <= 1000), "{page}");
    let page = both(&page);
    assert_eq!(page["has_more"], true);
    assert_eq!(page["next_line_offset"].as_u64(), page["end_line"].as_u64().map(|line| line + 1));
}

#[tokio::test]
async fn stateless_mode_has_one_tool_that_waits_for_the_result() {
    let mut client = Stdio::connect(&Folders::new(), "2025-11-25", &["--stateless"]).await;
    let listed = result(client.ask("tools/list", json!({})).await);
    let names: Vec<_> = listed["tools"].as_array().expect("tools").iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["run_js", "health_check"]);
    let answer = client.call("run_js", json!({ "code": "console.log('hello')" })).await;
    assert_eq!((&answer["isError"], both(&answer)), (&json!(false), &json!({ "output": "hello\n" })));
    let answer = client.call("run_js", json!({ "code": "console.log('before'); null.x" })).await;
    assert_eq!(answer["isError"], true);
    assert_eq!(both(&answer)["output"], "before\n");
    assert!(both(&answer)["error"].as_str().is_some_and(|error| error.contains("TypeError")), "{answer}");
    let answer = client.call("run_js", json!({ "code": "1", "heap": "" })).await;
    assert!(answer["content"][0]["text"].as_str().is_some_and(|text| text.contains("`heap`")), "{answer}");
    for method in ["resources/list", "tasks/list"] {
        assert!(client.ask(method, json!({})).await["error"]["code"].is_i64(), "{method}");
    }
    assert_eq!(client.answer(&request("ping", json!({}))).await["result"], json!({}));
}

/// Every object in a schema with its path.
fn objects<'a>(place: &str, schema: &'a Value, found: &mut Vec<(String, &'a Value)>) {
    let is_object = schema["type"] == "object" || schema["type"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "object"));
    if is_object {
        found.push((place.to_owned(), schema));
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        assert!(property.get("type").or(property.get("anyOf")).is_some(), "{place}.{name} has no type: {property}");
        objects(&format!("{place}.{name}"), property, found);
    }
    if let Some(items) = schema.get("items") {
        objects(&format!("{place}[]"), items, found);
    }
    for choice in schema["anyOf"].as_array().into_iter().flatten() {
        objects(place, choice, found);
    }
}

/// Arguments that are free-form maps. Every other object accepts only its named members.
const MAPS: [&str; 6] =
    ["run_js.tags", "plasm.tags", "plasm_run.tags", "set_heap_tags.tags", "query_heaps_by_tags.tags", "context_set.custom"];

/// Regression: schemas did not say that unknown arguments are refused, and those of tools without arguments had no `properties`.
#[tokio::test]
async fn schemas_forbid_unknown_arguments_and_the_server_refuses_them() {
    let server = Server::start_with(&Folders::new(), &["--plasm-names"]);
    let mut stateless = Stdio::connect(&Folders::new(), "2025-11-25", &["--stateless"]).await;
    let client = Http::connect(&server, "2025-11-25", &[]).await;
    let stateless_tools = result(stateless.ask("tools/list", json!({})).await)["tools"].as_array().cloned().expect("tools");
    let all = tools(&client).await;
    for tool in all.iter().chain(&stateless_tools) {
        let name = tool["name"].as_str().expect("a name");
        let mut found = Vec::new();
        objects(name, &tool["inputSchema"], &mut found);
        for (place, object) in found {
            let expected = match place.as_str() {
                "context_set.custom" => json!(true),
                _ if MAPS.contains(&place.as_str()) => {
                    object["additionalProperties"].as_object().map_or(Value::Null, |_| object["additionalProperties"].clone())
                }
                _ => json!(false),
            };
            assert_eq!(object.get("additionalProperties"), Some(&expected), "{place}: {object}");
            assert!(object["properties"].is_object() || MAPS.contains(&place.as_str()), "{place}: {object}");
        }
    }
    for tool in &all {
        let name = tool["name"].as_str().expect("a name");
        let answer = client.call(name, json!({ "no_such_argument": 1 })).await;
        assert_eq!(answer["isError"], true, "{answer}");
        let text = answer["content"][0]["text"].as_str().expect("text");
        assert!(text.contains(&format!("`no_such_argument` is not a parameter of {name}")), "{name}: {text}");
    }
    for (name, arguments, says) in [
        ("context_set", json!({ "user_preferences": { "colour": "red" } }), "colour"),
        ("context_set", json!({ "user_preferences": { "output_format": "xml" } }), "user_preferences.output_format"),
        ("session_context", json!({ "intent": "i", "seeds": [{ "catalog": "c", "entity": "e", "colour": "red" }] }), "colour"),
        ("plasm_context", json!({ "intent": "i", "seeds": [{ "api": "c", "entity": "e", "colour": "red" }] }), "colour"),
        ("plasm_context", json!({ "intent": "i", "seeds": [{ "api": "c", "entry_id": "c", "entity": "e" }] }), "exactly one of"),
        ("plasm", json!({ "logical_session_ref": "s0", "program": "1", "code": "1" }), "`code` is not a parameter of plasm"),
        ("plasm_run", json!({ "logical_session_ref": "s0", "program": "1", "session": "s0" }), "`session` is not a parameter of plasm_run"),
    ] {
        let answer = client.call(name, arguments.clone()).await;
        assert_eq!(answer["isError"], true, "{name} {arguments}: {answer}");
        assert!(answer["content"][0]["text"].as_str().is_some_and(|text| text.contains(says)), "{name} {arguments}: {answer}");
    }
}

/// Regression: the preferences of `context_set` had no types, neither as a tool nor over REST.
#[tokio::test]
async fn preferences_allowed_by_the_schema_are_accepted() {
    let server = Server::start();
    let client = Http::connect(&server, "2025-11-25", &[]).await;
    let all = tools(&client).await;
    let set = all.iter().find(|tool| tool["name"] == "context_set").expect("context_set");
    let properties = &set["inputSchema"]["properties"]["user_preferences"]["properties"];
    let formats = properties["output_format"]["enum"].as_array().expect("choices").clone();
    assert_eq!(formats, [json!("json"), json!("markdown"), json!("plain"), Value::Null]);
    for format in formats {
        both(&client.call("context_set", json!({ "user_preferences": { "output_format": format } })).await);
    }
    for (preference, kind) in [("max_results", "integer"), ("language", "string")] {
        assert_eq!(properties[preference]["type"], json!([kind, "null"]), "{preference}");
    }
    for max in [json!(1), json!(10_000), json!(7.0), Value::Null] {
        let answer = client.call("context_set", json!({ "user_preferences": { "max_results": max, "language": "pt-BR" } })).await;
        assert_eq!(answer["isError"], false, "{answer}");
    }
    let document = server.get("/api-doc/openapi.json").await.1;
    let body = &document["paths"]["/api/context"]["post"]["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(&body["properties"]["user_preferences"]["properties"], properties, "{body}");
}
