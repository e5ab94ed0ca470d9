//! Every flag of the server accepts a valid value and refuses an invalid one, on the command line, as a variable and in a file.

use crate::common::{Place, Ran};
use std::collections::BTreeSet;

/// A flag, a valid value, and an invalid value with part of its error. Without an invalid value, any text is valid.
type Flag = (&'static str, &'static str, Option<(&'static str, &'static str)>);

const FLAGS: [Flag; 75] = [
    ("http-port", "8420", Some(("65536", "0..=65535"))),
    ("sse-port", "8421", Some(("x", "invalid digit"))),
    ("bind-host", "::1", Some(("localhost", "invalid IP address"))),
    ("allowed-hosts", "a,b", None),
    ("allowed-origins", "http://a,http://b", None),
    ("session-id", "mine", Some(("a\nb", "none of them a control character"))),
    ("max-inline-chars", "1000", Some(("999", "allowed are 1000 to"))),
    ("max-connections", "40", Some(("39", "allowed are 40 to 1000000"))),
    ("max-body-mb", "200", Some(("199", "allowed are 200 to 1048576"))),
    ("max-response-mb", "16", Some(("15", "allowed are 16 to 1048576"))),
    ("auth-tokens", "tokens.toml", None),
    ("jwks-url", "https://id.example/keys", Some(("http://id.example/keys", "expected https://"))),
    ("jwt-issuer", "https://id.example/", None),
    ("jwt-audience", "heapstead", None),
    ("jwt-tenant-claim", "org", None),
    ("auth-resolution", "delegated", Some(("mine", "shared, delegated"))),
    ("insecure-no-auth", "true", Some(("perhaps", "allowed are true and false"))),
    ("heap-memory-max", "4096", Some(("7", "allowed are 8 to 4096 MB"))),
    ("execution-timeout", "300", Some(("0", "allowed are 1 to 300 seconds"))),
    ("heap-memory-limit", "4096", Some(("4097", "allowed are 8 to 4096 MB"))),
    ("execution-timeout-limit", "300", Some(("301", "allowed are 1 to 300 seconds"))),
    ("stateful-jit", "off", Some(("perhaps", "on, off"))),
    ("jitless", "true", Some(("perhaps", "allowed are true and false"))),
    ("timer-resolution-us", "1000000", Some(("0", "allowed are 1 to 1000000"))),
    ("namespaces", "required", Some(("perhaps", "auto, required"))),
    ("zygote-per-owner", "true", Some(("perhaps", "allowed are true and false"))),
    ("output-max-mb", "1", Some(("4097", "allowed are 1 to 4096 MB"))),
    ("max-concurrent-executions", "4096", Some(("0", "allowed are 1 to 4096"))),
    ("max-queued", "1", Some(("1000001", "allowed are 1 to 1000000"))),
    ("max-source-mb", "16", Some(("15", "allowed are 16 to 1048576"))),
    ("max-answer-mb", "128", Some(("127", "allowed are 128 to 1048576"))),
    ("max-memory-mb", "8", Some(("7", "allowed are 8 to"))),
    ("on-missing-heap", "fail", Some(("cry", "fresh, fail"))),
    ("stateless", "true", Some(("perhaps", "allowed are true and false"))),
    ("session-ttl", "30m", Some(("30y", "expected a number from 1 to 9999 and s, m, h, d or w"))),
    ("catalog", "statistics,dates", None),
    ("require-session", "true", Some(("perhaps", "allowed are true and false"))),
    ("plasm-names", "true", Some(("perhaps", "allowed are true and false"))),
    ("max-sessions-per-owner", "1", Some(("0", "allowed are 1 to 1000000000"))),
    ("retain-sessions", "36500", Some(("0", "allowed are 1 to 36500"))),
    ("max-stored-mb-per-owner", "1", Some(("0", "allowed are 1 to 1073741824"))),
    ("max-heap-mb-per-owner", "1", Some(("0", "allowed are 1 to 1073741824"))),
    ("max-running-per-owner", "1", Some(("1000001", "allowed are 1 to 1000000"))),
    ("live", "off", Some(("maybe", "on, off"))),
    ("session-durability", "journal", Some(("perhaps", "journal, snapshot"))),
    ("live-max-mb", "1", Some(("0", "allowed are 1 to 1073741824"))),
    ("live-max-per-owner", "1", Some(("0", "allowed are 1 to 1000000"))),
    ("live-idle-secs", "1", Some(("0", "allowed are 1 to 31536000"))),
    ("checkpoint-concurrency", "64", Some(("65", "allowed are 1 to 64"))),
    ("journal-tail-turns", "1", Some(("0", "allowed are 1 to 100000"))),
    ("journal-tail-secs", "1", Some(("0", "allowed are 1 to 31536000"))),
    ("context-store", "memory", Some(("disk", "memory, sqlite, redis, none"))),
    ("context-ttl", "1h", Some(("1y", "expected a number from 1 to 9999 and s, m, h, d or w"))),
    ("context-max", "1", Some(("0", "allowed are 1 to 100000000"))),
    ("context-memory-mb", "1", Some(("1048577", "allowed are 1 to 1048576"))),
    ("context-flush", "10s", Some(("0s", "expected a number from 1 to 9999 and s, m, h, d or w"))),
    ("redis-url", "redis://127.0.0.1:6379", None),
    ("context-key-file", "keys", None),
    ("allow-heap-import", "true", Some(("perhaps", "allowed are true and false"))),
    ("directory-path", "heaps", None),
    ("s3-bucket", "heaps", Some(("a/b", "3 to 63 letters, digits, dots, dashes and underscores"))),
    ("s3-endpoint", "https://s3.example", None),
    ("s3-region", "eu-central-1", None),
    ("s3-access-key-id", "id", None),
    ("s3-secret-access-key", "secret", None),
    ("s3-session-token", "token", None),
    ("s3-path-style", "false", Some(("perhaps", "allowed are true and false"))),
    ("s3-allow-http", "true", Some(("perhaps", "allowed are true and false"))),
    ("cache-dir", "cache", None),
    ("cache-max-mb", "1", Some(("0", "allowed are 1 to"))),
    ("session-db-path", "sessions", None),
    ("retain-heaps", "36500", Some(("0", "allowed are 1 to 36500"))),
    ("retain-executions", "1", Some(("36501", "allowed are 1 to 36500"))),
    ("log", "heapstead=debug", Some(("[", "invalid filter directive"))),
    ("config", "empty.toml", Some(("missing.toml", "No such file"))),
];

/// An invalid log filter is refused after all other flags have been checked, so that nothing starts.
const REFUSED_LAST: [&str; 2] = ["--log", "["];

fn variable(flag: &str) -> String {
    format!("HEAPSTEAD_{}", flag.replace('-', "_").to_uppercase())
}

/// The files that some flags need.
fn place_with_files() -> Place {
    let place = Place::new();
    place.file("empty.toml", "");
    place
}

#[test]
fn every_flag_is_in_the_table() {
    let page = Place::new().ran(["reference", "flags"]).out;
    let server = page.split("## `heapstead serve`").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("a section").to_owned();
    let documented: BTreeSet<_> =
        server.lines().filter_map(|line| line.strip_prefix("| `--")).filter_map(|rest| rest.split(['`', ' ', '[']).next()).collect();
    assert_eq!(documented, FLAGS.iter().map(|(flag, ..)| *flag).collect());
    for (flag, ..) in FLAGS {
        assert!(server.contains(&format!("`{}`", variable(flag))), "{flag} has no variable of its name");
    }
}

fn check_accepted(ran: &Ran, flag: &str) {
    assert_eq!(ran.code, Some(2), "{flag}: {ran:?}");
    let own_complaint = if flag.starts_with("s3-") || flag == "cache-dir" { "without `--s3-bucket`" } else { "`--log` is `[`" };
    assert!(ran.err.contains(own_complaint) || ran.err.contains("`--log` is `[`"), "{flag}: {ran:?}");
}

#[test]
fn valid_values_are_accepted_from_every_source() {
    let place = place_with_files();
    for (flag, good, _) in FLAGS.into_iter().filter(|(flag, ..)| *flag != "log") {
        let argument = format!("--{flag}={good}");
        check_accepted(&place.ran(["serve", &argument].iter().chain(&REFUSED_LAST)), flag);
        let ran: Ran = place.command(["serve"].iter().chain(&REFUSED_LAST)).env(variable(flag), good).output().expect("it runs").into();
        check_accepted(&ran, flag);
        if flag != "config" {
            let file = place.file("good.toml", format!("{flag} = {}", as_toml(good)));
            check_accepted(&place.ran(["serve", "--config", &file].iter().chain(&REFUSED_LAST)), flag);
        }
    }
}

#[test]
fn invalid_values_are_refused_from_every_source() {
    let place = place_with_files();
    let check = |ran: Ran, flag: &str, bad: &str, allowed: &str| {
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{flag}: {ran:?}");
        for part in [flag, bad, allowed] {
            assert!(ran.err.contains(part), "{flag}: `{part}` is not in {ran:?}");
        }
    };
    for (flag, _, bad) in FLAGS {
        let Some((bad, allowed)) = bad else { continue };
        check(place.ran(["serve", &format!("--{flag}={bad}")]), flag, bad, allowed);
        check(place.command(["serve"]).env(variable(flag), bad).output().expect("it runs").into(), flag, bad, allowed);
        if !matches!(
            flag,
            "config"
                | "log"
                | "jitless"
                | "zygote-per-owner"
                | "stateless"
                | "insecure-no-auth"
                | "allow-heap-import"
                | "require-session"
                | "plasm-names"
                | "s3-path-style"
                | "s3-allow-http"
                | "sse-port"
                | "session-id"
        ) {
            let file = place.file("bad.toml", format!("{flag} = {}", as_toml(bad)));
            check(place.ran(["serve", "--config", &file]), flag, bad, allowed);
        }
    }
    assert!(!place.heaps().exists(), "something was started");
}

#[test]
fn a_memory_limit_below_one_run_is_refused_at_the_start() {
    // A port in use, so that the server would not stay up if the flags were accepted.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("its address").port().to_string();
    for arguments in [&["--max-memory-mb", "351"][..], &["--max-memory-mb", "400", "--heap-memory-max", "81"]] {
        let ran = Place::new().ran([&["serve", "--http-port", &port], arguments].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{arguments:?}: {ran:?}");
        for part in ["`--max-memory-mb` is ", "`--heap-memory-max` is "] {
            assert!(ran.err.contains(part), "{arguments:?}: `{part}` is not in {ran:?}");
        }
    }
}

#[test]
fn a_default_above_its_limit_is_refused_at_the_start() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("its address").port().to_string();
    for (limit, text) in [
        (["--heap-memory-limit", "63"], "`--heap-memory-max` is 64, and `--heap-memory-limit` is 63"),
        (["--execution-timeout-limit", "29"], "`--execution-timeout` is 30, and `--execution-timeout-limit` is 29"),
    ] {
        let ran = Place::new().ran([&["serve", "--http-port", &port][..], &limit].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.err.contains(text), "{ran:?}");
    }
}

/// Numbers and booleans unchanged, everything else in quotes.
fn as_toml(value: &str) -> String {
    if value.parse::<i64>().is_ok() || value.parse::<bool>().is_ok() { value.to_owned() } else { format!("{value:?}") }
}
