//! Names under which secrets are passed: `DB_PASS`, `x-api-key`, `clientSecret`. Not `max_tokens`, not `compass`.

/// Parts of names, in lowercase without dashes and underscores.
const PARTS: [&str; 36] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "passkey",
    "pswd",
    "secret",
    "apikey",
    "authkey",
    "authorization",
    "cookie",
    "credential",
    "privatekey",
    "privkey",
    "accesskey",
    "accountkey",
    "masterkey",
    "sharedkey",
    "servicekey",
    "deploykey",
    "subscriptionkey",
    "sshkey",
    "hmackey",
    "bearer",
    "clientkey",
    "signingkey",
    "encryptionkey",
    "decryptionkey",
    "connectionstring",
    "seedphrase",
    "accesstoken",
    "authtoken",
    "refreshtoken",
    "apitoken",
    "amzsignature",
    "sessid",
];
/// Names that mean it only when they stand alone or at the end (`token`, `access_token`; not `max_tokens`).
const ENDINGS: [&str; 4] = ["token", "pwd", "auth", "jwt"];
/// Last words that mean it only as a whole word (`DB_PASS`, `userPass`; not `compass`).
const LAST_WORDS: [&str; 4] = ["pass", "psw", "otp", "totp"];
/// What `pass` follows without a break where it is one.
const BEFORE_PASS: [&str; 24] = [
    "db", "my", "user", "usr", "root", "admin", "smtp", "imap", "mail", "email", "ftp", "sftp", "ssh", "redis", "pg", "postgres", "mysql",
    "mongo", "sql", "proxy", "login", "ldap", "http", "sudo",
];

pub fn is_secret_name(name: &str) -> bool {
    let plain: String = name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    // The second of two passwords is one too: `DB_PASS2`.
    let unnumbered = plain.trim_end_matches(|letter: char| letter.is_ascii_digit());
    PARTS.iter().any(|part| plain.contains(part)) || ENDINGS.iter().any(|ending| unnumbered.ends_with(ending)) || ends_in_pass(name)
}

fn ends_in_pass(name: &str) -> bool {
    let last = last_word(name.trim_end_matches(|letter: char| !letter.is_alphabetic())).to_lowercase();
    LAST_WORDS.contains(&last.as_str()) || last.strip_suffix("pass").is_some_and(|before| BEFORE_PASS.contains(&before))
}

/// `Pass` of `dbPass`, `PASS` of `DB_PASS`, all of `DBPASS`.
fn last_word(name: &str) -> &str {
    let mut begin = 0;
    let mut previous = ' ';
    for (at, letter) in name.char_indices() {
        if !letter.is_alphanumeric() {
            begin = at + letter.len_utf8();
        } else if previous.is_lowercase() && letter.is_uppercase() {
            begin = at;
        }
        previous = letter;
    }
    &name[begin..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known_and_others_are_not() {
        for name in [
            "password",
            "API_KEY",
            "x-api-key",
            "client_secret",
            "access_token",
            "Authorization",
            "Set-Cookie",
            "db.pwd",
            "accessKeyId",
            "dbpass",
            "DB_PASS",
            "DBPASS",
            "dbPass",
            "DB_PASS2",
            "smtp_pass",
            "pass",
            "PASS",
            "user-pass",
            "config.db.pass",
            "auth_key",
            "X-Auth-Key",
            "AuthKey",
            "AccountKey",
            "Ocp-Apim-Subscription-Key",
            "X-Amz-Signature",
            "PHPSESSID",
            "AUTH_TOKEN_PROD",
            "refreshTokens",
            "token2",
            "passkey",
            "sshpass",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "max_tokens",
            "code",
            "query",
            "heap",
            "author",
            "path",
            "keyword",
            "session",
            "tokens_used",
            "compass",
            "passenger",
            "bypass",
            "Compass",
            "COMPASS",
            "by_passenger",
            "passed",
            "passThrough",
            "pass_count",
            "trespass",
            "surpass",
            "encompass",
            "underpass",
            "key",
            "primary_key",
            "sort_key",
            "public_key",
            "authority",
            "authored_by",
            "monkey",
            "adopt",
            "",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
