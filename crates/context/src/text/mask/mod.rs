//! Finds likely secrets by name, by format or by the preceding text, and replaces them with `***`.

mod address;
mod name;
mod value;

pub use name::is_secret_name;

use address::mask_addresses;
use serde_json::Value;
use std::borrow::Cow;
use value::{Part, QUOTES, assignment_bytes, goes_on, is_operator, is_quoted, skip_space};

pub const MASK: &str = "***";

/// Prefixes of well-known token formats.
const SECRET_BEGINNINGS: [&str; 30] = [
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "rk_test_",
    "whsec_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xoxr-",
    "xoxs-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "npm_",
    "pypi-",
    "hf_",
    "dop_v1_",
    "SG.",
    "shpat_",
    "eyJ",
];
/// Minimum length after the prefix.
const SECRET_REST_MIN: usize = 8;
/// Mixed-case letters and digits without a break: ordinary words do not look like this.
const RANDOM_CHARS_MIN: usize = 32;

/// A value under a secret's name is masked whatever it looks like, unless it cannot hold a secret.
pub fn hides(name: &str, value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(_)) && is_secret_name(name)
}

pub fn mask(text: &str) -> String {
    let text = mask_addresses(&mask_private_keys(text));
    let mut masked = String::with_capacity(text.len());
    let mut rest = text.as_str();
    let mut previous = "";
    while !rest.is_empty() {
        let (between, after) = rest.split_at(rest.find(is_word).unwrap_or(rest.len()));
        masked.push_str(between);
        let (word, after) = after.split_at(after.find(|letter| !is_word(letter)).unwrap_or(after.len()));
        masked.push_str(if looks_secret(word) { MASK } else { word });
        let name = if is_second_word(between, word) { Cow::from(format!("{previous}{word}")) } else { word.into() };
        let before = &text[..text.len() - after.len() - word.len()];
        rest = match announced_bytes(before, &name, after) {
            Some(bytes) => {
                masked.push_str(&after[..bytes]);
                mask_value(&mut masked, &after[bytes..], Extent::of(before, &name, after))
            }
            None => after,
        };
        previous = word;
    }
    masked
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '+' | '~')
}

/// The second word of a name such as `API key` or `pass phrase`.
fn is_second_word(between: &str, word: &str) -> bool {
    between == " " && ["key", "phrase", "word", "code", "string"].iter().any(|second| word.eq_ignore_ascii_case(second))
}

fn is_scheme(word: &str) -> bool {
    ["bearer", "basic", "digest"].iter().any(|scheme| word.eq_ignore_ascii_case(scheme))
}

/// Words before a value that are not part of it.
fn introduces(word: &str) -> bool {
    is_scheme(word) || ["await", "new"].contains(&word)
}

/// Length of the text between a name and its secret: `password=`, `"api_key": `, `set("token", "`, `--password x`, `<password>`, `PASSWORD
/// 'x'`, `Bearer `. `None` if no secret follows.
fn announced_bytes(before: &str, name: &str, after: &str) -> Option<usize> {
    let spaced = skip_space(after);
    let space_bytes = after.len() - spaced.len();
    let bytes = if space_bytes > 0 && (is_scheme(name) || is_user_flag(before, name)) {
        space_bytes
    } else if !is_secret_name(name) {
        return None;
    } else if is_element(before, after) {
        1
    } else {
        let is_beside = space_bytes > 0 && (name.starts_with("--") || is_quoted(spaced));
        let said = || listed_bytes(before, name, after).or_else(|| assignment_bytes(after)).or_else(|| stated_bytes(after));
        said().or(is_beside.then_some(space_bytes))?
    };
    (!is_string_end(before, after, bytes)).then_some(bytes)
}

/// `curl -u me:…`
fn is_user_flag(before: &str, name: &str) -> bool {
    ["-u", "--user", "-U", "--proxy-user"].contains(&name) && before.rsplit('\n').next().is_some_and(|line| line.contains("curl"))
}

/// `the password is "…"`, but not `the password is required`.
fn stated_bytes(after: &str) -> Option<usize> {
    let stated = [" is ", " was "].iter().find_map(|verb| after.strip_prefix(verb))?;
    is_quoted(stated).then(|| after.len() - stated.len())
}

/// How far a value extends.
#[derive(Clone, Copy)]
enum Extent {
    /// To the end of the value in the syntax of its language.
    Value,
    /// `<password>…</password>`
    Element,
    /// `Cookie: a=1; b=2`
    Header,
}

impl Extent {
    fn of(before: &str, name: &str, after: &str) -> Self {
        if is_element(before, after) {
            return Self::Element;
        }
        let is_cookie = name.to_lowercase().ends_with("cookie");
        let is_bare = after.strip_prefix(": ").is_some_and(|value| !is_quoted(value));
        if is_cookie && is_bare { Self::Header } else { Self::Value }
    }

    /// End of the text that is masked as a whole. `None` if it is masked in parts.
    fn end(self, text: &str) -> Option<usize> {
        let end = match self {
            Self::Value => return None,
            Self::Element => text.find('<'),
            Self::Header => text.find(['\n', '\r', '"', '\'', '`', '\\']),
        };
        Some(end.unwrap_or(text.len()))
    }
}

/// `<password>…`
fn is_element(before: &str, after: &str) -> bool {
    before.ends_with('<') && after.starts_with('>')
}

/// `set("token", "…")`, `["--password", "…"]`, but not a list of names.
fn listed_bytes(before: &str, name: &str, after: &str) -> Option<usize> {
    let unquoted = before.trim_end_matches(QUOTES);
    let is_first_argument = unquoted.len() < before.len() && unquoted.ends_with('(');
    let listed = after.trim_start_matches(QUOTES).trim_start().strip_prefix(',')?.trim_start();
    ((is_first_argument || name.starts_with("--")) && is_quoted(listed)).then(|| after.len() - listed.len())
}

/// `log("password:", x)`: this quote closes the string that contains the name.
fn is_string_end(before: &str, after: &str, bytes: usize) -> bool {
    let mut letters = after[bytes..].chars();
    let Some(quote) = letters.next().filter(|letter| QUOTES[..3].contains(letter)) else { return false };
    let is_followed = letters.next().is_none_or(|next| next.is_whitespace() || matches!(next, ',' | ';' | ')' | ']' | '}' | '+' | '.'));
    let is_name_quoted = after.starts_with(QUOTES);
    let line = if quote == '`' { before } else { before.rsplit('\n').next().unwrap_or(before) };
    let opened = line.match_indices(quote).filter(|(at, _)| !line[..*at].ends_with('\\')).count();
    is_followed && !is_name_quoted && opened % 2 == 1
}

/// Masks the value that `text` begins with, part by part. Returns the rest of the text.
fn mask_value<'a>(masked: &mut String, text: &'a str, extent: Extent) -> &'a str {
    if let Some(end) = extent.end(text) {
        let (value, after) = text.split_at(end);
        masked.push_str(if value.trim().is_empty() { value } else { MASK });
        return after;
    }
    // A reference. Without the space, `&` starts the next parameter of a URL.
    let is_reference = masked.ends_with(' ') && text.starts_with('&');
    masked.push_str(if is_reference { "&" } else { "" });
    let mut rest = &text[usize::from(is_reference)..];
    let mut is_choice = false;
    loop {
        let part = Part::at_start_of(rest);
        let is_introduction = !part.is_quoted() && introduces(part.inside);
        masked.push_str(part.opening);
        masked.push_str(if part.inside.is_empty() || is_introduction { part.inside } else { MASK });
        masked.push_str(part.closing);
        rest = &rest[part.bytes()..];
        if !is_introduction && !goes_on(rest, part.is_quoted(), is_choice) {
            return rest;
        }
        let next = rest.trim_start_matches(is_operator);
        let operator = &rest[..rest.len() - next.len()];
        masked.push_str(operator);
        // `'Bearer ' + token`: this quote closes the string around the word.
        if operator.is_empty() || (is_introduction && is_quoted(next)) {
            return next;
        }
        is_choice |= operator.contains('?');
        rest = next;
    }
}

fn looks_secret(word: &str) -> bool {
    let has_beginning =
        SECRET_BEGINNINGS.iter().any(|beginning| word.starts_with(beginning) && word.len() >= beginning.len() + SECRET_REST_MIN);
    has_beginning || word.split('.').any(looks_random)
}

fn looks_random(word: &str) -> bool {
    let count = |is: fn(&u8) -> bool| word.bytes().filter(is).count();
    word.len() >= RANDOM_CHARS_MIN
        && count(u8::is_ascii_uppercase) >= 3
        && count(u8::is_ascii_lowercase) >= 3
        && count(u8::is_ascii_digit) >= 3
}

fn mask_private_keys(text: &str) -> String {
    const BEGIN: &str = "-----BEGIN ";
    const END: &str = "-----END ";
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find(BEGIN) {
        let (before, block) = rest.split_at(begin);
        kept.push_str(before);
        let end = block.find(END).map_or(block.len(), |end| {
            let after = end + END.len();
            block[after..].find("-----").map_or(block.len(), |dashes| after + dashes + 5)
        });
        kept.push_str(if block[..end].contains("PRIVATE KEY") { MASK } else { &block[..end] });
        rest = &block[end..];
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn likely_secrets_are_masked_and_the_rest_is_unchanged() {
        for (text, masked) in [
            ("const key = \"sk-abcdefghijkl\";", "const key = \"***\";"),
            ("Authorization: Bearer abc.def-123", "Authorization: Bearer ***"),
            ("curl -H 'Authorization: Basic dXNlcjpwYXNz' x", "curl -H 'Authorization: Basic ***' x"),
            ("password=p@ss!w0rd&user=me", "password=***&user=me"),
            ("{\"api_key\": \"short\", \"n\": 1}", "{\"api_key\": \"***\", \"n\": 1}"),
            ("postgres://me:s3cr3t@db/x", "postgres://me:***@db/x"),
            ("redis://me:a@b@db/x", "redis://me:***@db/x"),
            ("go to https://example.com:8080/a", "go to https://example.com:8080/a"),
            ("AKIAIOSFODNN7EXAMPLE", "***"),
            ("eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl", "***"),
            ("is wJalrXUtnFEMIK7MDENG5bPxRfiCYEXAMPLEKEY0 it", "is *** it"),
            ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- after", "*** after"),
            ("-----BEGIN PRIVATE KEY-----\ncut sh", "***"),
            ("-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----", "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----"),
            ("token = ", "token = "),
            ("let x = tokens.map(t => t + 1)", "let x = tokens.map(t => t + 1)"),
            // Quoted: to the closing quote, whatever precedes it.
            ("const password=\"$ecret!x\";", "const password=\"***\";"),
            ("password = \"correct horse battery staple\" // ok", "password = \"***\" // ok"),
            ("{password:\"abc,defGHI(1)\", n: 1}", "{password:\"***\", n: 1}"),
            (r#"{password:"a\"b, c\\", n: "d"}"#, r#"{password:"***", n: "d"}"#),
            ("pass: 'it\\'s me', n: 'x'", "pass: '***', n: 'x'"),
            ("WHERE password = 'it''s me' AND n = 'x'", "WHERE password = '***' AND n = 'x'"),
            ("secret = `a ${b} \"c\"`; 'x'", "secret = `***`; 'x'"),
            ("password = \"\"\"a \"b\" c\"\"\" x", "password = \"\"\"***\"\"\" x"),
            ("password = r#\"a b\"#; x", "password = r#\"***\"#; x"),
            (r#"body: "{\"password\":\"a, b\",\"n\":\"x y\"}""#, r#"body: "{\"password\":\"***\",\"n\":\"x y\"}""#),
            (r#""{\"password\":\"a\\\"b c\",\"n\":1}""#, r#""{\"password\":\"***\",\"n\":1}""#),
            ("config[\"db_pass\"] = 'a b'", "config[\"db_pass\"] = '***'"),
            ("password: \"a b", "password: \"***"),
            ("password: \"\", user: \"me\"", "password: \"\", user: \"me\""),
            // In several parts.
            ("password = \"a b\" + 'c d'; x", "password = \"***\" + '***'; x"),
            ("const password: string = \"a b\"", "const password: *** = \"***\""),
            ("let password: &str = \"a b\";", "let password: &*** = \"***\";"),
            ("password: string | null = 'a b'", "password: *** | *** = '***'"),
            ("let token: Option<&str> = Some(\"a b\");", "let token: ***<&***> = ***;"),
            ("password = x ? 'a b' : 'c d'", "password = *** ? '***' : '***'"),
            ("token = env.TOKEN ?? \"a b\", n", "token = *** ?? \"***\", n"),
            ("password = await hash(\"a b\", 'c'); x", "password = await ***; x"),
            ("secrets = [\"a b\", \"c)d\"]; x", "secrets = ***; x"),
            // Other notations.
            ("h.set('Authorization', 'Bearer a b')", "h.set('Authorization', '***')"),
            ("[\"--password\", \"a b\"]", "[\"--password\", \"***\"]"),
            ("mysql --password hunter2 | grep x", "mysql --password *** | grep x"),
            ("CREATE USER me PASSWORD 'a b' x", "CREATE USER me PASSWORD '***' x"),
            (":password => 'a b'", ":password => '***'"),
            ("<password>a b</password> x", "<password>***</password> x"),
            ("the API key: abc123 x", "the API key: *** x"),
            ("password=&user=me", "password=&user=me"),
            ("the password is \"a b\", he said", "the password is \"***\", he said"),
            ("a password is required", "a password is required"),
            ("curl -u me:hunter2 https://x", "curl -u *** https://x"),
            ("curl --user 'me:a b' https://x", "curl --user '***' https://x"),
            ("sort -u me:too", "sort -u me:too"),
            ("curl -H 'Cookie: a=1; sid=abc def' https://x", "curl -H 'Cookie: ***' https://x"),
            ("Set-Cookie: sid=abc; Path=/\nContent-Length: 5", "Set-Cookie: ***\nContent-Length: 5"),
            // A name inside a string does not name the value after the string.
            ("log(\"password:\", n); x = \"y\"", "log(\"password:\", n); x = \"y\""),
            ("'Authorization: Bearer ' + t + 'x y'", "'Authorization: Bearer ' + t + 'x y'"),
            ("f(\"user=1&password=\" + p + \"&n=1\")", "f(\"user=1&password=\" + p + \"&n=1\")"),
            ("[\"password\", \"username\"]", "[\"password\", \"username\"]"),
            ("compass: \"north\", passenger='x', bypass=1", "compass: \"north\", passenger='x', bypass=1"),
            ("desk-abcdefghijklm", "desk-abcdefghijklm"),
            ("", ""),
        ] {
            assert_eq!(mask(text), masked, "{text}");
        }
        let heap_key = "0123456789abcdef".repeat(4);
        assert_eq!(mask(&heap_key), heap_key, "a hash is no secret");
    }

    /// Escapes the quote and the backslash, `depth` times.
    fn quote(value: &str, quote: char, depth: usize) -> String {
        let mut text = format!("{quote}{}{quote}", value.replace('\\', "\\\\").replace(quote, &format!("\\{quote}")));
        for _ in 0..depth {
            text = text.replace('\\', "\\\\").replace(quote, &format!("\\{quote}"));
        }
        text
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// A quoted value after the name of a secret never appears in the output, whatever its quoting and position.
        #[test]
        fn a_quoted_value_behind_a_secret_name_never_appears(
            before in prop::sample::select(vec!["", "const ", "{", "x = \"y\"; ", "f('a', ", "Hello, ", "$", "user: `me`, ", "--"]),
            name in prop::sample::select(vec!["password", "DB_PASS", "apiKey", "X-Auth-Key", "token", "client_secret", "pwd"]),
            is_name_quoted in any::<bool>(),
            operator in prop::sample::select(vec!["=", ": ", " = ", ":", " := ", " => ", ":\n  ", " == "]),
            start in "[^a-zA-Z0-9]{0,6}",
            end in "\\PC{0,12}|[\"'`\\\\ ,;(){}+?:]{0,8}",
            mark in prop::sample::select(vec!['"', '\'', '`']),
            depth in 0..3_usize,
            after in prop::sample::select(vec!["", ";", ", n: 1", "}", " x", ")", "\n"]),
        ) {
            let value = format!("{start}VALUE{end}END");
            let name = if is_name_quoted { quote(name, mark, depth) } else { name.to_owned() };
            let text = format!("{before}{name}{operator}{}{after}", quote(&value, mark, depth));
            let masked = mask(&text);
            prop_assert!(!masked.contains("VALUE") && !masked.contains("END"), "{text}\n{masked}");
            prop_assert!(masked.ends_with(after), "{text}\n{masked}");
            prop_assert_eq!(mask(&masked), masked);
        }

        /// Any text is masked without a panic or an endless loop.
        #[test]
        fn any_text_is_masked(text in "(\\PC|password|token: |[\"'`\\\\ ,;=:(){}<>+?|&]){0,60}") {
            mask(&text);
        }
    }
}
