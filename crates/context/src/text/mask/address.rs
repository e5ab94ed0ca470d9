//! Masks passwords in URLs: `postgres://me:s3cr3t@db`, `redis://:s3cr3t@cache`.

use super::MASK;

pub fn mask_addresses(text: &str) -> String {
    const SCHEME_END: &str = "://";
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find(SCHEME_END) {
        let (before, after) = rest.split_at(begin + SCHEME_END.len());
        kept.push_str(before);
        rest = after;
        if let Some((user, password_end)) = password_in(after) {
            kept.push_str(&after[..=user]);
            kept.push_str(MASK);
            rest = &after[password_end..];
        }
    }
    kept.push_str(rest);
    kept
}

/// Positions of the colon before the password and of the `@` after it.
fn password_in(after_scheme: &str) -> Option<(usize, usize)> {
    let ends = |letter: char| letter.is_whitespace() || matches!(letter, '"' | '\'' | '`' | '<' | '>' | '\\');
    let address = &after_scheme[..after_scheme.find(ends).unwrap_or(after_scheme.len())];
    let authority = &address[..address.find(['/', '?', '#']).unwrap_or(address.len())];
    let colon = authority.find(':')?;
    let is_port = authority[colon + 1..].bytes().all(|byte| byte.is_ascii_digit());
    // Some passwords are not percent-encoded as they should be: `me:pa/ss@db`.
    let at = authority.rfind('@').or_else(|| address.rfind('@').filter(|_| !is_port && !address.starts_with('[')))?;
    (colon + 1 < at).then_some((colon, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_in_urls_are_masked_and_ports_are_not() {
        for (text, masked) in [
            ("postgres://me:s3cr3t@db/x", "postgres://me:***@db/x"),
            ("postgres://me:s3cr3tEND@db", "postgres://me:***@db"),
            ("redis://:hunter2@host", "redis://:***@host"),
            ("https://me%40x:pw@host/x", "https://me%40x:***@host/x"),
            ("redis://me:a@b@db/x", "redis://me:***@db/x"),
            ("redis://me:a/b?c#d@db/x", "redis://me:***@db/x"),
            ("redis://me:a,b;c)d&e@db, redis://:f@db", "redis://me:***@db, redis://:***@db"),
            ("mongodb://me:pw@a:27017,b:27017/db", "mongodb://me:***@a:27017,b:27017/db"),
            ("go to https://example.com:8080/a", "go to https://example.com:8080/a"),
            ("https://example.com:8080/@scope/a", "https://example.com:8080/@scope/a"),
            ("http://[::1]:80/@a", "http://[::1]:80/@a"),
            ("https://me@host:80/a:b", "https://me@host:80/a:b"),
            ("https://me:@host", "https://me:@host"),
            ("://", "://"),
        ] {
            assert_eq!(mask_addresses(text), masked, "{text}");
        }
    }
}
