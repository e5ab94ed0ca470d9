//! URL natives for heaps of earlier builds, whose JavaScript calls them and expects their former results.

use super::strings;
use ::url::{Url, quirks};

pub fn parse<'s>(scope: &mut v8::PinScope<'s, '_>, arguments: &v8::FunctionCallbackArguments<'s>, answer: &mut v8::ReturnValue<'_>) {
    let input = arguments.get(0).to_rust_string_lossy(scope);
    let parsed = if arguments.get(1).is_undefined() {
        Url::parse(&input)
    } else {
        let base = arguments.get(1).to_rust_string_lossy(scope);
        Url::parse(&base).and_then(|base| base.join(&input))
    };
    if let Ok(url) = parsed {
        answer.set(parts(scope, &url));
    }
}

pub fn set<'s>(scope: &mut v8::PinScope<'s, '_>, arguments: &v8::FunctionCallbackArguments<'s>, answer: &mut v8::ReturnValue<'_>) {
    let href = arguments.get(0).to_rust_string_lossy(scope);
    let part = arguments.get(1).to_rust_string_lossy(scope);
    let value = arguments.get(2).to_rust_string_lossy(scope);
    let Ok(mut url) = Url::parse(&href) else { return };
    // An invalid value is ignored, as the standard requires.
    let _ = match part.as_str() {
        "href" => quirks::set_href(&mut url, &value).map_err(drop),
        "protocol" => quirks::set_protocol(&mut url, &value),
        "username" => quirks::set_username(&mut url, &value),
        "password" => quirks::set_password(&mut url, &value),
        "host" => quirks::set_host(&mut url, &value),
        "hostname" => quirks::set_hostname(&mut url, &value),
        "port" => quirks::set_port(&mut url, &value),
        "pathname" => {
            quirks::set_pathname(&mut url, &value);
            Ok(())
        }
        "search" => {
            quirks::set_search(&mut url, &value);
            Ok(())
        }
        "hash" => {
            quirks::set_hash(&mut url, &value);
            Ok(())
        }
        _ => Err(()),
    };
    answer.set(parts(scope, &url));
}

fn parts<'s>(scope: &mut v8::PinScope<'s, '_>, url: &Url) -> v8::Local<'s, v8::Value> {
    let origin = quirks::origin(url);
    strings(
        scope,
        &[
            quirks::href(url),
            quirks::protocol(url),
            quirks::username(url),
            quirks::password(url),
            quirks::host(url),
            quirks::hostname(url),
            quirks::port(url),
            quirks::pathname(url),
            quirks::search(url),
            quirks::hash(url),
            &origin,
        ],
    )
}
