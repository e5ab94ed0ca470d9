//! An issuer whose key set is at hand: verifies JWTs as the server does, without fetching anything. For the fuzz targets.

use super::Identity;
use super::jwt::{self, JwtSettings};
use super::keys::Keys;
use super::signatures;
use reqwest::Url;
use serde_json::{Map, Value};

pub struct Issuer {
    settings: JwtSettings,
    keys: Keys,
}

impl Issuer {
    /// None if `jwks` is not a key set with at least one usable key.
    pub fn new(jwks: &[u8], issuer: &str, audience: &str) -> Option<Self> {
        signatures::install();
        let keys = Keys::read(jwks).ok().filter(|keys| keys.len() > 0)?;
        let jwks_url = Url::parse("https://issuer.example/keys").ok()?;
        let settings = JwtSettings { jwks_url, issuer: issuer.into(), audience: audience.into(), tenant_claim: "tenant".into() };
        Some(Self { settings, keys })
    }

    pub fn identity(&self, text: &str) -> Option<Identity> {
        let header = jwt::header(text).ok()?;
        let key = self.keys.find(header.kid.as_deref(), header.alg)?;
        self.settings.verify(text, header.alg, key).ok()
    }

    /// As if these claims had been in a JWT with a valid signature.
    pub fn identity_in(&self, claims: &Map<String, Value>) -> Option<Identity> {
        self.settings.identity(claims).ok()
    }
}
