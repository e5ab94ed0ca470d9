//! Collects the arguments of a call from the path, the query and the JSON body.

use crate::api::{Arguments, Operation};
use crate::http::{self, Problem};
use axum::RequestPartsExt;
use axum::body::Body;
use axum::extract::Path;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use http_body_util::BodyExt;
use percent_encoding::percent_decode_str;
use serde_json::{Number, Value};

/// Limit on the request text that an error quotes.
const SHOWN_CHARS_MAX: usize = 80;

pub async fn collect(operation: &Operation, parts: &mut Parts, body: Body) -> Result<Arguments, Problem> {
    let mut arguments = match parts.method {
        Method::POST | Method::PUT => {
            if let Some((name, _)) = query(parts)?.first() {
                return Err(Problem::bad_input(format!("`{}` is in the query: this method takes its arguments in the body", shown(name))));
            }
            json(&parts.headers, body).await?
        }
        _ => from_query(&operation.input, parts)?,
    };
    for (name, text) in path(parts).await? {
        insert(&mut arguments, name, Value::String(text))?;
    }
    Ok(arguments)
}

/// The path parameters.
pub async fn path(parts: &mut Parts) -> Result<Vec<(String, String)>, Problem> {
    let path = parts.extract::<Path<Vec<(String, String)>>>().await;
    path.map(|Path(values)| values).map_err(|_| Problem::bad_input("the path is not UTF-8 after percent-decoding"))
}

fn query(parts: &Parts) -> Result<Vec<(String, String)>, Problem> {
    let query = parts.uri.query().unwrap_or_default();
    // `form_urlencoded` replaces invalid UTF-8 instead of refusing it.
    if percent_decode_str(query).decode_utf8().is_err() {
        return Err(Problem::bad_input(format!("the query `{}` is not UTF-8 after percent-decoding", shown(query))));
    }
    Ok(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
}

/// The arguments in the query, with the types that this schema gives them.
pub fn from_query(schema: &Value, parts: &Parts) -> Result<Arguments, Problem> {
    let known = schema.get("properties");
    let mut arguments = Arguments::new();
    for (name, text) in query(parts)? {
        let value = coerce(known.and_then(|known| known.get(&name)), text);
        insert(&mut arguments, name, value)?;
    }
    Ok(arguments)
}

/// Refuses any query parameter, for an endpoint that takes none.
pub fn no_query(parts: &Parts) -> Result<(), Problem> {
    match query(parts)?.first() {
        Some((name, _)) => Err(Problem::bad_input(format!("`{}` is not a parameter of this endpoint, which takes none", shown(name)))),
        None => Ok(()),
    }
}

fn insert(arguments: &mut Arguments, name: String, value: Value) -> Result<(), Problem> {
    if arguments.contains_key(&name) {
        return Err(Problem::bad_input(format!("`{}` is given twice", shown(&name))));
    }
    arguments.insert(name, value);
    Ok(())
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN_CHARS_MAX).collect()
}

/// Converts text to the type of its parameter. Text that does not convert stays a string, which validation refuses.
fn coerce(property: Option<&Value>, text: String) -> Value {
    let kind = property.and_then(|property| property.get("type")).and_then(Value::as_str);
    let coerced = match (kind, text.as_str()) {
        (Some("integer" | "number"), number) if !number.contains(char::is_whitespace) => {
            serde_json::from_str::<Number>(number).ok().map(Value::Number)
        }
        (Some("boolean"), "true") => Some(Value::Bool(true)),
        (Some("boolean"), "false") => Some(Value::Bool(false)),
        _ => None,
    };
    coerced.unwrap_or(Value::String(text))
}

/// The members of a JSON body; an empty body has none.
async fn json(headers: &HeaderMap, body: Body) -> Result<Arguments, Problem> {
    // The body has been buffered and its size checked.
    let body = body.collect().await.map_err(|error| Problem::bad_input(format!("the body can't be read: {error}")))?.to_bytes();
    if body.is_empty() {
        return Ok(Arguments::new());
    }
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !is_json(content_type) {
        let detail = format!("`Content-Type` is `{}`: expected application/json", shown(content_type));
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    if headers.get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "`Content-Encoding` is not supported: send the body uncompressed"));
    }
    http::json_object(&body)
}

fn is_json(content_type: &str) -> bool {
    let mut parts = content_type.split(';').map(|part| part.trim().to_ascii_lowercase());
    parts.next().is_some_and(|kind| kind == "application/json")
        && parts.all(|parameter| match parameter.split_once('=') {
            Some(("charset", name)) => matches!(name.trim_matches('"'), "utf-8" | "utf8" | "us-ascii"),
            Some(_) => true,
            None => parameter.is_empty(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn query_values_have_the_type_of_their_parameter() {
        for (kind, text, expected) in [
            ("integer", "5", json!(5)),
            ("integer", "-5", json!(-5)),
            ("integer", "5.5", json!(5.5)),
            ("integer", " 5", json!(" 5")),
            ("integer", "five", json!("five")),
            ("integer", "", json!("")),
            ("number", "2.5", json!(2.5)),
            ("number", "NaN", json!("NaN")),
            ("boolean", "true", json!(true)),
            ("boolean", "1", json!("1")),
            ("string", "5", json!("5")),
        ] {
            assert_eq!(coerce(Some(&json!({ "type": kind })), text.into()), expected, "{kind} {text:?}");
        }
    }

    #[test]
    fn json_is_recognised_by_its_media_type() {
        for good in ["application/json", "Application/JSON; charset=UTF-8", "application/json;", "application/json; profile=x"] {
            assert!(is_json(good), "{good}");
        }
        for bad in ["", "text/plain", "application/jsonx", "application/json; charset=latin1", "application/problem+json"] {
            assert!(!is_json(bad), "{bad}");
        }
    }
}
