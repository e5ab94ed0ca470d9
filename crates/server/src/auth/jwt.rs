//! Validates JWTs of a trusted issuer: signature, issuer, audience and times. Returns the owner they name.

use super::jwks::{Jwks, NoKey};
use super::refusal::{Reason, Refusal};
use super::signatures;
use heapstead_types::Principal;
use jsonwebtoken::{Validation, decode, decode_header};
use reqwest::Url;
use serde_json::{Map, Value};
use std::sync::Arc;

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

    pub async fn principal(&self, text: &str) -> Result<Principal, Refusal> {
        let refused = |error: jsonwebtoken::errors::Error| Reason::Jwt(error.to_string());
        // `none` is not a known algorithm, so parsing such a header fails.
        let header = decode_header(text).map_err(refused)?;
        if header.crit.is_some() {
            return Err(Reason::Jwt("it requires extensions (`crit`) that are not supported".into()).into());
        }
        let key = self.keys.key(header.kid.as_deref(), header.alg).await.map_err(|none| match none {
            NoKey::Unknown => Reason::UnknownKey.into(),
            NoKey::Unavailable => Refusal::Unavailable,
        })?;
        let mut validation = Validation::new(header.alg);
        validation.leeway = LEEWAY_SECS;
        validation.validate_nbf = true;
        validation.set_issuer(&[&self.settings.issuer]);
        validation.set_audience(&[&self.settings.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        let claims = decode::<Map<String, Value>>(text, &key.key, &validation).map_err(refused)?.claims;
        Ok(self.owner(&claims)?)
    }

    fn owner(&self, claims: &Map<String, Value>) -> Result<Principal, Reason> {
        let tenant_claim = &self.settings.tenant_claim;
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
