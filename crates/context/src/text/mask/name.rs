//! Recognises names under which secrets are passed: `DB_PASS`, `x-api-key`, `clientSecret`, but not `max_tokens` or `compass`.

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
/// Names that denote a secret only alone or at the end (`token`, `access_token`, but not `max_tokens`).
const ENDINGS: [&str; 4] = ["token", "pwd", "auth", "jwt"];
/// Last words that denote a secret only as a whole word (`DB_PASS`, `userPass`, but not `compass`).
const LAST_WORDS: [&str; 4] = ["pass", "psw", "otp", "totp"];
/// Words that `pass` may follow without a separator.
const BEFORE_PASS: [&str; 24] = [
    "db", "my", "user", "usr", "root", "admin", "smtp", "imap", "mail", "email", "ftp", "sftp", "ssh", "redis", "pg", "postgres", "mysql",
    "mongo", "sql", "proxy", "login", "ldap", "http", "sudo",
];

pub fn is_secret_name(name: &str) -> bool {
    let plain: String = name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    // A numbered password is a secret too: `DB_PASS2`.
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
