//! Reads the credentials of a request from `Authorization: Bearer …` only, so that none end up in URLs and access logs.

use super::refusal::{Reason, Refusal};
use axum::http::{HeaderMap, header};

/// Longer than the tokens of any identity provider.
const CHARS_MAX: usize = 16 << 10;

pub fn credentials(headers: &HeaderMap) -> Result<&str, Refusal> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let value = match (given.next(), given.next()) {
        (None, _) => return Err(Refusal::Missing),
        (Some(_), Some(_)) => return Err(Reason::GivenTwice.into()),
        (Some(value), None) => value.to_str().map_err(|_| Reason::Malformed)?,
    };
    let (scheme, text) = value.split_once(' ').unwrap_or((value, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Refusal::Missing);
    }
    let text = text.trim();
    let is_token = !text.is_empty() && text.len() <= CHARS_MAX && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_token { Ok(text) } else { Err(Reason::Malformed.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_bearer_token_in_one_header_is_credentials() {
        let given = |values: &[&str]| {
            let headers: HeaderMap = values.iter().map(|value| (header::AUTHORIZATION, value.parse().expect("a value"))).collect();
            credentials(&headers).map(str::to_owned)
        };
        for (values, expected) in [
            (&["Bearer abc"][..], Ok("abc")),
            (&["bearer   abc "], Ok("abc")),
            (&[], Err(Refusal::Missing)),
            (&["Basic abc"], Err(Refusal::Missing)),
            (&["abc"], Err(Refusal::Missing)),
            (&["Bearer"], Err(Reason::Malformed.into())),
            (&["Bearer a b"], Err(Reason::Malformed.into())),
            (&["Bearer abc", "Bearer abc"], Err(Reason::GivenTwice.into())),
        ] {
            assert_eq!(given(values), expected.map(str::to_owned), "{values:?}");
        }
        assert_eq!(given(&[&format!("Bearer {}", "x".repeat(CHARS_MAX + 1))]), Err(Reason::Malformed.into()));
    }
}
