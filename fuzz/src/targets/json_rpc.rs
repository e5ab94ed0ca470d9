//! JSON-RPC: any bytes are messages that mean the same when they are read again, or errors in the form of JSON-RPC.

use heapstead_server::fuzzing::{BATCH_MAX, json_rpc};
use serde_json::Value;

pub fn run(input: (bool, &[u8])) {
    let (batches, bytes) = input;
    let items = match json_rpc(bytes, batches) {
        Ok(items) => items,
        Err(error) => return check_error(&error),
    };
    assert!((1..=BATCH_MAX).contains(&items.len()) && (batches || items.len() == 1));
    for item in items {
        match item {
            Ok(message) => check_message(&message),
            Err(error) => check_error(&error),
        }
    }
}

fn check_error(error: &Value) {
    assert_eq!(error["jsonrpc"], "2.0");
    assert!(error["error"]["code"].is_i64() && error["error"]["message"].is_string(), "{error}");
    assert!(error.get("result").is_none());
}

fn check_message(message: &Value) {
    assert_eq!(message["jsonrpc"], "2.0");
    let again = json_rpc(message.to_string().as_bytes(), false).expect("a message that was read can be read again");
    assert_eq!(again, [Ok(message.clone())]);
}
