//! The usable keys of a JSON Web Key Set: public signature keys with a supported algorithm.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;
use std::str::FromStr;

const RSA: &[Algorithm] = &[Algorithm::RS256, Algorithm::RS384, Algorithm::RS512, Algorithm::PS256, Algorithm::PS384, Algorithm::PS512];

#[derive(Clone)]
pub struct Key {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    pub key: DecodingKey,
}

pub struct Keys(Vec<Key>);

#[derive(Deserialize)]
struct Set {
    keys: Vec<Value>,
}

impl Keys {
    /// Skips unusable keys instead of refusing the whole set, because they may be meant for other uses.
    pub fn read(json: &[u8]) -> Result<Self, serde_json::Error> {
        let set: Set = serde_json::from_slice(json)?;
        Ok(Self(set.keys.into_iter().filter_map(|key| Key::new(&serde_json::from_value(key).ok()?)).collect()))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The key that a JWT names. A JWT without a key id matches only if the set has exactly one key.
    pub fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<&Key> {
        let mut fitting = self.0.iter().filter(|key| key.algorithms.contains(&algorithm) && (id.is_none() || key.id.as_deref() == id));
        let found = fitting.next()?;
        if id.is_none() && fitting.next().is_some() { None } else { Some(found) }
    }
}

impl Key {
    fn new(jwk: &Jwk) -> Option<Self> {
        let common = &jwk.common;
        let for_signatures = common.public_key_use.as_ref().is_none_or(|purpose| *purpose == PublicKeyUse::Signature)
            && common.key_operations.as_ref().is_none_or(|operations| operations.contains(&KeyOperations::Verify));
        let possible: &[Algorithm] = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => RSA,
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => &[Algorithm::ES256],
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P384 => &[Algorithm::ES384],
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => &[Algorithm::EdDSA],
            _ => return None,
        };
        let algorithms = match &common.key_algorithm {
            None => possible.to_vec(),
            Some(named) => {
                let named = Algorithm::from_str(&named.to_string()).ok()?;
                possible.iter().copied().filter(|algorithm| *algorithm == named).collect()
            }
        };
        let usable = for_signatures && !algorithms.is_empty();
        Some(Self { id: common.key_id.clone(), algorithms, key: DecodingKey::from_jwk(jwk).ok()? }).filter(|_| usable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_public_signature_keys_are_used() {
        let ec = json!({ "kty": "EC", "crv": "P-256", "kid": "ec", "x": "AAAA", "y": "AAAA" });
        let with = |member: &str, value: Value| {
            let mut key = ec.clone();
            key[member] = value;
            key
        };
        let taken = |key: Value| Keys::read(json!({ "keys": [key] }).to_string().as_bytes()).expect("a set").len() == 1;
        assert!(taken(ec.clone()));
        assert!(taken(with("use", "sig".into())) && taken(with("alg", "ES256".into())) && taken(with("key_ops", json!(["verify"]))));
        for other in [
            with("use", "enc".into()),
            with("key_ops", json!(["encrypt"])),
            with("alg", "RS256".into()),
            with("alg", "HS256".into()),
            with("crv", "P-521".into()),
            with("crv", "secp256k1".into()),
            json!({ "kty": "oct", "k": "c2VjcmV0", "alg": "HS256" }),
            json!({ "kty": "OKP", "crv": "X25519", "x": "AAAA" }),
            json!({ "kty": "new" }),
            json!(7),
        ] {
            assert!(!taken(other.clone()), "{other}");
        }
        assert!(Keys::read(b"{}").is_err() && Keys::read(b"<html>").is_err());
    }

    #[test]
    fn a_jwt_without_a_key_id_matches_a_single_key() {
        let key = |id: &str| json!({ "kty": "OKP", "crv": "Ed25519", "kid": id, "x": "AAAA" });
        let keys = |keys: Value| Keys::read(json!({ "keys": keys }).to_string().as_bytes()).expect("a set");
        let one = keys(json!([key("a")]));
        assert!(one.find(None, Algorithm::EdDSA).is_some() && one.find(Some("a"), Algorithm::EdDSA).is_some());
        assert!(one.find(Some("b"), Algorithm::EdDSA).is_none() && one.find(Some("a"), Algorithm::ES256).is_none());
        assert!(keys(json!([key("a"), key("b")])).find(None, Algorithm::EdDSA).is_none());
    }
}
