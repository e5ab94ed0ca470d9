//! Headers of a request: credentials are one visible token, and a request for another host or from a foreign page is refused.

use heapstead_server::fuzzing::headers;

type Value<'a> = Option<&'a [u8]>;
/// The URI, `Host`, `Origin`, `Accept` and any number of `Authorization`.
type Input<'a> = (&'a str, Value<'a>, Value<'a>, Value<'a>, Vec<&'a [u8]>);

pub fn run(input: Input<'_>) {
    let (uri, host, origin, accept, authorization) = input;
    let one = |name: &'static str, value: Option<&'_ [u8]>| value.map(|value| (name, value.to_vec()));
    let given = [one("host", host), one("origin", origin), one("accept", accept)].into_iter().flatten();
    let given: Vec<_> = given.chain(authorization.iter().map(|value| ("authorization", value.to_vec()))).collect();
    let lines: Vec<_> = given.iter().map(|(name, value)| (*name, value.as_slice())).collect();
    let Some((credentials, is_allowed)) = headers(uri, &lines) else { return };
    if let Some(token) = credentials {
        assert!(authorization.len() == 1 && !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()));
    }
    if is_allowed && let Some(host) = host {
        let name = host.split(|byte| *byte == b':').next().unwrap_or_default();
        assert!(name.eq_ignore_ascii_case(b"localhost"), "{host:?}");
    }
    if is_allowed && let Some(origin) = origin {
        let own = host.map(|host| [b"://", host].concat());
        let is_own = own.is_some_and(|own| origin.ends_with(&own)) || (host.is_none() && origin.contains(&b':'));
        assert!(is_own || origin.eq_ignore_ascii_case(b"https://allowed.example"), "{origin:?}");
    }
}
