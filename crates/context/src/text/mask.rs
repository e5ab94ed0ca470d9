//! Finds what looks like a secret, by its name, by its shape, or by what stands before it, and puts `***` there.

use serde_json::Value;

pub const MASK: &str = "***";

/// Parts of names under which secrets are passed, in lowercase without dashes and underscores.
const SECRET_NAMES: [&str; 16] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "apikey",
    "authorization",
    "cookie",
    "credential",
    "privatekey",
    "accesskey",
    "bearer",
    "clientkey",
    "signingkey",
    "encryptionkey",
    "connectionstring",
];
/// Names that mean it only when they stand alone or at the end (`token`, `access_token`; not `max_tokens`).
const SECRET_ENDINGS: [&str; 4] = ["token", "pwd", "auth", "jwt"];
/// How tokens of well-known makers begin.
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
/// What follows a beginning, at least.
const SECRET_REST_MIN: usize = 8;
/// Letters of both cases and digits, without a break: nobody writes words like that.
const RANDOM_CHARS_MIN: usize = 32;

pub fn is_secret_name(name: &str) -> bool {
    let plain: String = name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    SECRET_NAMES.iter().any(|part| plain.contains(part)) || SECRET_ENDINGS.iter().any(|ending| plain.ends_with(ending))
}

/// A value under a secret's name is one whatever it looks like, unless it can't say anything.
pub fn hides(name: &str, value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(_)) && is_secret_name(name)
}

pub fn mask(text: &str) -> String {
    let text = mask_private_keys(text);
    let mut masked = String::with_capacity(text.len());
    let mut rest = text.as_str();
    // Whether what comes next was announced as a secret (`password: `, `Bearer `).
    let mut announced = false;
    while !rest.is_empty() {
        let gap = rest.find(is_word).unwrap_or(rest.len());
        let (between, after) = rest.split_at(gap);
        masked.push_str(between);
        if announced {
            let (secret, after) = after.split_at(after.find(ends_value).unwrap_or(after.len()));
            announced = is_scheme(secret);
            masked.push_str(if announced || secret.is_empty() { secret } else { MASK });
            rest = after;
            continue;
        }
        let (word, after) = after.split_at(after.find(|letter| !is_word(letter)).unwrap_or(after.len()));
        let in_address = between.ends_with("://").then(|| password_in(after)).flatten();
        if let Some(password_bytes) = in_address {
            masked.push_str(word);
            masked.push(':');
            masked.push_str(MASK);
            rest = &after[1 + password_bytes..];
            continue;
        }
        masked.push_str(if looks_secret(word) { MASK } else { word });
        announced = announces(word, after);
        rest = after;
    }
    masked
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '+' | '~')
}

fn ends_value(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '"' | '\'' | '`' | ',' | ';' | '&' | ')' | '}' | ']' | '<' | '>' | '\\')
}

fn is_scheme(word: &str) -> bool {
    ["bearer", "basic", "digest"].iter().any(|scheme| word.eq_ignore_ascii_case(scheme))
}

/// `password=`, `"api_key": `, `token := '`, `Bearer `.
fn announces(word: &str, after: &str) -> bool {
    let between = &after[..after.find(is_word).unwrap_or(after.len())];
    let is_assignment =
        between.contains([':', '=']) && between.chars().all(|letter| matches!(letter, ' ' | '"' | '\'' | '`' | ':' | '=' | '\\'));
    let is_space = !between.is_empty() && between.chars().all(char::is_whitespace);
    (is_assignment && is_secret_name(word)) || (is_space && is_scheme(word))
}

/// How long the password is in `user:password@host`, of which the user was read.
fn password_in(after_user: &str) -> Option<usize> {
    let rest = after_user.strip_prefix(':')?;
    let end = rest.find(|letter: char| ends_value(letter) || letter == '/')?.min(rest.len());
    rest[..end].rfind('@').or_else(|| rest.find('@').filter(|at| *at < end)).filter(|bytes| *bytes > 0)
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

    #[test]
    fn names_of_secrets_are_known_and_others_are_not() {
        for name in
            ["password", "API_KEY", "x-api-key", "client_secret", "access_token", "Authorization", "Set-Cookie", "db.pwd", "accessKeyId"]
        {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["max_tokens", "code", "query", "heap", "author", "path", "keyword", "session", "tokens_used"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn what_looks_secret_is_masked_and_the_rest_is_left() {
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
            ("desk-abcdefghijklm", "desk-abcdefghijklm"),
            ("", ""),
        ] {
            assert_eq!(mask(text), masked, "{text}");
        }
        let heap_key = "0123456789abcdef".repeat(4);
        assert_eq!(mask(&heap_key), heap_key, "a hash is no secret");
    }
}
