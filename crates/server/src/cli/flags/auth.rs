//! Authentication flags: bearer tokens in a file, JWTs of an issuer, or no authentication.

use super::FlagError;
use super::values::{boolish, not_empty};
use crate::auth::{JwtSettings, Resolution, Settings, is_this_machine};
use reqwest::Url;
use std::net::IpAddr;
use std::path::PathBuf;

const AUTHENTICATION: &str = "Authentication";

#[derive(clap::Args)]
pub struct AuthOptions {
    #[command(flatten)]
    pub tokens: TokenFileOptions,
    /// Accept JWTs signed with a key of the JWKS at this URL: https://…, or http://… on this machine
    #[arg(long, value_name = "URL", env = "HEAPSTEAD_JWKS_URL", value_parser = key_set_url, help_heading = AUTHENTICATION)]
    jwks_url: Option<Url>,
    /// Required issuer: claim `iss` of the JWT
    #[arg(long, value_name = "ISSUER", env = "HEAPSTEAD_JWT_ISSUER", value_parser = not_empty, help_heading = AUTHENTICATION)]
    jwt_issuer: Option<String>,
    /// Required audience: one of claim `aud` of the JWT
    #[arg(long, value_name = "AUDIENCE", env = "HEAPSTEAD_JWT_AUDIENCE", value_parser = not_empty, help_heading = AUTHENTICATION)]
    jwt_audience: Option<String>,
    /// Claim that names the tenant; a JWT without it belongs to tenant `default`
    #[arg(long, value_name = "CLAIM", env = "HEAPSTEAD_JWT_TENANT_CLAIM", default_value = "tenant", value_parser = not_empty, help_heading = AUTHENTICATION)]
    jwt_tenant_claim: String,
    /// Which identity must match to resume an execute session
    #[arg(long, value_name = "WHOSE", env = "HEAPSTEAD_AUTH_RESOLUTION", default_value = "shared", help_heading = AUTHENTICATION)]
    pub auth_resolution: Resolution,
    /// Accept remote clients without authentication: every client that reaches the port has full access
    #[arg(long, value_name = "BOOL", env = "HEAPSTEAD_INSECURE_NO_AUTH", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", value_parser = boolish, action = clap::ArgAction::Set, help_heading = AUTHENTICATION)]
    insecure_no_auth: bool,
}

#[derive(clap::Args)]
pub struct TokenFileOptions {
    /// Accept the bearer tokens of this file, which `heapstead auth` manages
    #[arg(long, value_name = "FILE", env = "HEAPSTEAD_AUTH_TOKENS", help_heading = AUTHENTICATION)]
    pub auth_tokens: Option<PathBuf>,
}

impl AuthOptions {
    /// The authentication settings, if the flags are consistent.
    pub fn settings(&self) -> Result<Settings, FlagError> {
        let jwt = match (&self.jwks_url, &self.jwt_issuer, &self.jwt_audience) {
            (None, None, None) => None,
            (Some(url), Some(issuer), Some(audience)) => Some(JwtSettings {
                jwks_url: url.clone(),
                issuer: issuer.clone(),
                audience: audience.clone(),
                tenant_claim: self.jwt_tenant_claim.clone(),
            }),
            (None, ..) => return Err(FlagError::JwtWithout { flag: "--jwks-url" }),
            (_, None, _) => return Err(FlagError::JwtWithout { flag: "--jwt-issuer" }),
            (.., None) => return Err(FlagError::JwtWithout { flag: "--jwt-audience" }),
        };
        Ok(Settings { tokens: self.tokens.auth_tokens.clone(), jwt })
    }

    /// Whether authentication is on.
    pub fn is_on(&self) -> bool {
        self.tokens.auth_tokens.is_some() || self.jwks_url.is_some()
    }

    /// Whether every caller is the operator: without authentication, on an address that only this machine reaches.
    pub fn callers_are_operators(&self, host: IpAddr) -> bool {
        !self.is_on() && host.to_canonical().is_loopback()
    }

    /// Whether callers may be different owners, or different remote clients.
    pub fn has_several_owners(&self) -> bool {
        self.is_on() || self.insecure_no_auth
    }

    /// Refuses to listen on a remote address without authentication.
    pub fn check_exposure(&self, host: IpAddr) -> Result<(), FlagError> {
        let is_safe = host.to_canonical().is_loopback() || self.is_on() || self.insecure_no_auth;
        if is_safe { Ok(()) } else { Err(FlagError::Exposed { host }) }
    }
}

/// The keys are trusted because of their URL, so the transport must be secure.
fn key_set_url(text: &str) -> Result<Url, &'static str> {
    const ALLOWED: &str = "expected https://…, or http://… on this machine";
    let url: Url = text.parse().map_err(|_| ALLOWED)?;
    let is_safe = url.scheme() == "https" || (url.scheme() == "http" && is_this_machine(&url));
    if is_safe && url.has_host() { Ok(url) } else { Err(ALLOWED) }
}
