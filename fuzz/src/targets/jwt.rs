//! JWTs and the key sets that verify them: a token is accepted only if one of the public keys signed it. The fuzzer has no private key, so
//! nothing is ever accepted, except the tokens of the corpus under the fixed key set.

use crate::within;
use heapstead_server::fuzzing::{issuer, jwt};

const ISSUER: &str = "https://issuer.example/";
const AUDIENCE: &str = "heapstead";
/// A JSON value takes up to this many times its text.
const FACTOR: usize = 128;

/// A key of each kind that issuers use. The private keys were thrown away.
const KEYS: &[u8] = include_bytes!("../../keys.json");

/// A key set, or the fixed one, and a JWT.
type Input<'a> = (Option<&'a [u8]>, &'a str);

pub fn run(input: Input<'_>) {
    let (jwks, token) = input;
    let (is_own, jwks) = (jwks.is_some(), jwks.unwrap_or(KEYS));
    let bytes_max = FACTOR * (jwks.len() + token.len()) + (64 << 10);
    let owner = within(bytes_max, || issuer(jwks, ISSUER, AUDIENCE).and_then(|issuer| jwt(&issuer, token)));
    // A key set of the fuzzer may have a key whose signatures are known.
    assert!(owner.is_none() || is_own, "nobody can sign for these keys");
}
