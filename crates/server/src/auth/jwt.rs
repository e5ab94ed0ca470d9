//! Validates JWTs of a trusted issuer: signature, issuer, audience and times. Returns the owner and the permissions they name.

use super::Identity;
use super::jwks::{Jwks, NoKey};
use super::keys::Key;
use super::refusal::{Reason, Refusal};
use super::signatures;
use heapstead_types::{Permissions, Principal};
use jsonwebtoken::{Algorithm, Header, Validation, decode, decode_header};
use reqwest::Url;
use serde_json::{Map, Value};
use std::sync::Arc;

/// The claim that holds permissions: words separated by spaces (RFC 8693). Other words in it are for other services.
const PERMISSIONS_CLAIM: &str = "scope";
/// Allowed clock difference.
const LEEWAY_SECS: u64 = 30;
/// The tenant for a JWT without a tenant claim.
const TENANT_DEFAULT: &str = "default";

#[derive(Debug, Clone)]
pub struct JwtSettings {
    pub jwks_url: Url,
    pub issuer: String,
    pub audience: String,
    /// The claim that holds the tenant.
    pub tenant_claim: String,
}

pub struct Jwt {
    settings: JwtSettings,
    keys: Arc<Jwks>,
}

impl Jwt {
    pub async fn open(settings: JwtSettings) -> reqwest::Result<Self> {
        signatures::install();
        Ok(Self { keys: Jwks::open(&settings.jwks_url).await?, settings })
    }

    pub async fn identity(&self, text: &str) -> Result<Identity, Refusal> {
        let header = header(text)?;
        let key = self.keys.key(header.kid.as_deref(), header.alg).await.map_err(|none| match none {
            NoKey::Unknown => Reason::UnknownKey.into(),
            NoKey::Unavailable => Refusal::Unavailable,
        })?;
        Ok(self.settings.verify(text, header.alg, &key)?)
    }
}

/// The header of a JWT, which nothing has authenticated yet.
pub fn header(text: &str) -> Result<Header, Reason> {
    // `none` is not a known algorithm, so parsing such a header fails.
    let header = decode_header(text).map_err(refused)?;
    match header.crit {
        Some(_) => Err(Reason::Jwt("it requires extensions (`crit`) that are not supported".into())),
        None => Ok(header),
    }
}

fn refused(error: jsonwebtoken::errors::Error) -> Reason {
    Reason::Jwt(error.to_string())
}

impl JwtSettings {
    /// The owner and the permissions that a JWT names, if its signature, issuer, audience and times are right.
    pub fn verify(&self, text: &str, algorithm: Algorithm, key: &Key) -> Result<Identity, Reason> {
        let mut validation = Validation::new(algorithm);
        validation.leeway = LEEWAY_SECS;
        validation.validate_nbf = true;
        validation.set_issuer(&[&self.issuer]);
        validation.set_audience(&[&self.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        let claims = decode::<Map<String, Value>>(text, &key.key, &validation).map_err(refused)?.claims;
        self.identity(&claims)
    }

    /// The owner and the permissions that verified claims name.
    pub fn identity(&self, claims: &Map<String, Value>) -> Result<Identity, Reason> {
        Ok(Identity { principal: self.owner(claims)?, permissions: permissions(claims) })
    }

    fn owner(&self, claims: &Map<String, Value>) -> Result<Principal, Reason> {
        let tenant_claim = &self.tenant_claim;
        let tenant = match claims.get(tenant_claim) {
            None => Some(TENANT_DEFAULT),
            Some(value) => value.as_str(),
        };
        let not_text = |claim: &str| Reason::NoOwner { claim: claim.to_owned(), why: "it is not text".into() };
        let tenant = tenant.ok_or_else(|| not_text(tenant_claim))?;
        let subject = claims.get("sub").and_then(Value::as_str).ok_or_else(|| not_text("sub"))?;
        Principal::authenticated(tenant, subject)
            .map_err(|error| Reason::NoOwner { claim: format!("sub` or `{tenant_claim}"), why: error.to_string() })
    }
}

fn permissions(claims: &Map<String, Value>) -> Permissions {
    let scope = claims.get(PERMISSIONS_CLAIM).and_then(Value::as_str).unwrap_or_default();
    scope.split(' ').filter_map(|word| word.parse().ok()).collect()
}
