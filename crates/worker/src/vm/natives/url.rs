//! URLs, parsed and modified by Ada, the implementation that Node uses.
//!
//! A URL is passed to JavaScript as one array, which is the whole state of a URL object: a heap can't contain native memory.
//!
//! ```text
//! https://user:pass@example.com:1234/foo/bar?baz#quux
//!       |     |    |          | ^^^^|       |   |
//!       |     |    |          | |   |       |   `----- 8 hashStart
//!       |     |    |          | |   |       `--------- 7 searchStart
//!       |     |    |          | |   `----------------- 6 pathnameStart
//!       |     |    |          | `--------------------- 5 port
//!       |     |    |          `----------------------- 4 hostEnd
//!       |     |    `---------------------------------- 3 hostStart
//!       |     `--------------------------------------- 2 usernameEnd
//!       `--------------------------------------------- 1 protocolEnd
//! ```
//!
//! `href` is at 0. The index of a part that the URL does not have is −1.

use ada_url::Url;

/// Unpacks the tables for host names that are not ASCII, once, in the zygote. In a worker this would delay the run by milliseconds.
pub fn unpack_tables() {
    let _ = Url::parse("http://é/", None);
}

/// `parseUrl(input, base)`. Returns undefined if the URL is invalid.
pub fn parse<'s>(scope: &mut v8::PinScope<'s, '_>, arguments: &v8::FunctionCallbackArguments<'s>, answer: &mut v8::ReturnValue<'_>) {
    let input = arguments.get(0).to_rust_string_lossy(scope);
    let base = (!arguments.get(1).is_undefined()).then(|| arguments.get(1).to_rust_string_lossy(scope));
    if let Ok(url) = Url::parse(input.as_str(), base.as_deref()) {
        answer.set(record(scope, &url));
    }
}

/// `canParseUrl(input, base)`.
pub fn can_parse<'s>(scope: &mut v8::PinScope<'s, '_>, arguments: &v8::FunctionCallbackArguments<'s>, answer: &mut v8::ReturnValue<'_>) {
    let input = arguments.get(0).to_rust_string_lossy(scope);
    let base = (!arguments.get(1).is_undefined()).then(|| arguments.get(1).to_rust_string_lossy(scope));
    answer.set_bool(Url::can_parse(&input, base.as_deref()));
}

/// `originOfUrl(href)`.
pub fn origin<'s>(scope: &mut v8::PinScope<'s, '_>, arguments: &v8::FunctionCallbackArguments<'s>, answer: &mut v8::ReturnValue<'_>) {
    let href = arguments.get(0).to_rust_string_lossy(scope);
    let Ok(url) = Url::parse(href.as_str(), None) else { return };
    if let Some(origin) = v8::String::new(scope, &url.origin()) {
        answer.set(origin.into());
    }
}

/// `changeUrl(href, part, value)`. Returns undefined if the value is invalid; the URL does not change then.
pub fn change<'s>(scope: &mut v8::PinScope<'s, '_>, arguments: &v8::FunctionCallbackArguments<'s>, answer: &mut v8::ReturnValue<'_>) {
    let href = arguments.get(0).to_rust_string_lossy(scope);
    let part = arguments.get(1).to_rust_string_lossy(scope);
    let value = arguments.get(2).to_rust_string_lossy(scope);
    let Ok(mut url) = Url::parse(href.as_str(), None) else { return };
    if set(&mut url, &part, &value).is_ok() {
        answer.set(record(scope, &url));
    }
}

fn set(url: &mut Url, part: &str, value: &str) -> Result<(), ()> {
    match part {
        "href" => url.set_href(value),
        "protocol" => url.set_protocol(value),
        "username" => url.set_username(Some(value)),
        "password" => url.set_password(Some(value)),
        "host" => url.set_host(Some(value)),
        "hostname" => url.set_hostname(Some(value)),
        "port" => url.set_port(Some(value)),
        "pathname" => url.set_pathname(Some(value)),
        "search" => {
            url.set_search(Some(value));
            Ok(())
        }
        "hash" => {
            url.set_hash(Some(value));
            Ok(())
        }
        _ => Err(()),
    }
}

fn record<'s>(scope: &mut v8::PinScope<'s, '_>, url: &Url) -> v8::Local<'s, v8::Value> {
    let parts = url.components();
    let at = |position: Option<u32>| position.map_or(-1.0, f64::from);
    let numbers = [
        at(Some(parts.protocol_end)),
        at(Some(parts.username_end)),
        at(Some(parts.host_start)),
        at(Some(parts.host_end)),
        at(parts.port),
        at(parts.pathname_start),
        at(parts.search_start),
        at(parts.hash_start),
    ];
    // A URL longer than V8's maximum string length is invalid.
    let Some(href) = v8::String::new(scope, url.href()) else { return v8::undefined(scope).into() };
    let mut values: Vec<v8::Local<v8::Value>> = vec![href.into()];
    values.extend(numbers.map(|number| v8::Local::<v8::Value>::from(v8::Number::new(scope, number))));
    v8::Array::new_with_elements(scope, &values).into()
}
