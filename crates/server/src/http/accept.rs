//! Checks the `Accept` header against the media type of an endpoint.

use super::Problem;
use axum::http::{HeaderMap, StatusCode, header};

/// Errors are always sent as problem documents, whatever the client accepts.
pub fn require(headers: &HeaderMap, media_type: &str) -> Result<(), Problem> {
    let mut given = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).peekable();
    if given.peek().is_none() || given.any(|value| value.split(',').any(|range| includes(range, media_type))) {
        return Ok(());
    }
    Err(Problem::new(StatusCode::NOT_ACCEPTABLE, format!("`Accept` does not include {media_type}, the only type available here")))
}

/// Whether a range such as `text/*;q=0.5` includes the type.
fn includes(range: &str, media_type: &str) -> bool {
    let mut parts = range.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default().to_ascii_lowercase();
    let unwanted = parts.any(|parameter| {
        let weight = parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="));
        weight.and_then(|weight| weight.parse::<f32>().ok()).is_some_and(|weight| weight <= 0.0)
    });
    let matches = match name.split_once('/') {
        Some(("*", "*")) => true,
        Some((kind, "*")) => media_type.split_once('/').is_some_and(|(wanted, _)| wanted == kind),
        _ => name == media_type,
    };
    matches && !unwanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_ranges_are_matched_with_weights() {
        for (accept, accepted) in [
            ("*/*", true),
            ("text/html, application/json", true),
            ("application/*;q=0.5", true),
            ("Application/JSON; charset=utf-8", true),
            ("text/html", false),
            ("application/json;q=0", false),
            ("text/*, application/xml", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT, accept.parse().expect("a value"))]);
            assert_eq!(require(&headers, "application/json").is_ok(), accepted, "{accept}");
        }
        assert!(require(&HeaderMap::new(), "application/json").is_ok());
    }
}
