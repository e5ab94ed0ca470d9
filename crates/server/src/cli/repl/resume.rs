//! The command that continues a session, as the REPL prints it when it ends.

/// Flags that say where the session is. Others, such as limits, can differ the next time; secrets are not printed.
const PLACE: [&str; 9] = [
    "--url",
    "--token-file",
    "--owner",
    "--config",
    "--directory-path",
    "--session-db-path",
    "--s3-bucket",
    "--s3-endpoint",
    "--s3-region",
];

/// The command for a session, after a command with these arguments.
pub fn command(session: &str, arguments: impl IntoIterator<Item = String>) -> String {
    let mut command = format!("heapstead repl --session {}", quoted(session));
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let (flag, value) = match argument.split_once('=') {
            Some((flag, value)) => (flag, Some(value.to_owned())),
            None => (argument.as_str(), None),
        };
        if PLACE.contains(&flag)
            && let Some(value) = value.or_else(|| arguments.next())
        {
            command += &format!(" {flag} {}", quoted(&value));
        }
    }
    command
}

/// As a shell reads it.
fn quoted(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:@%+,[]".contains(&byte);
    match !text.is_empty() && text.bytes().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_repeats_where_the_session_is_and_no_secrets() {
        let check = |session, arguments: &[&str], expected: &str| {
            assert_eq!(command(session, arguments.iter().map(|argument| (*argument).to_owned())), expected);
        };
        check("notes", &["heapstead", "repl", "--heap", "00"], "heapstead repl --session notes");
        check("my idea's", &[], r"heapstead repl --session 'my idea'\''s'");
        check(
            "a",
            &["--token", "secret", "--url=http://[::1]:8420", "--execution-timeout", "5", "--session-db-path", "my db"],
            "heapstead repl --session a --url http://[::1]:8420 --session-db-path 'my db'",
        );
    }
}
