//! Where a bucket is and how it is reached: what is not set here comes from the usual `AWS_…` variables.

use super::error::BlobError;
use object_store::ClientConfigKey::{AllowHttp, ConnectTimeout, ReadTimeout, Timeout};
use object_store::aws::AmazonS3ConfigKey::{Client, DisableBulkDelete, Endpoint, S3Endpoint, VirtualHostedStyleRequest};
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::{BackoffConfig, RetryConfig};
use std::time::Duration;

/// Long enough for a store that is slow or restarts, and well inside the time that a run has.
pub const S3_DEADLINE_DEFAULT: Duration = Duration::from_secs(30);
/// A host that does not even accept a connection is tried again sooner than one that is slow to answer.
const CONNECT_TIMEOUT_MAX: Duration = Duration::from_secs(5);
const FIRST_RETRY_AFTER: Duration = Duration::from_millis(100);
/// More than fit into any deadline: it is time that ends the retries.
const RETRIES_MAX: usize = 1000;

// Without `Debug`: it holds a secret.
#[derive(Clone)]
pub struct S3Settings {
    pub bucket: String,
    /// For stores that are not Amazon's: `https://host:port`.
    pub endpoint: Option<String>,
    pub region: Option<String>,
    pub access_key_id: Option<String>,
    pub secret_access_key: Option<String>,
    pub session_token: Option<String>,
    /// `https://host/bucket/key` (when nothing says otherwise) or `https://bucket.host/key`.
    pub path_style: Option<bool>,
    /// Whether an endpoint may be `http://…`.
    pub allow_http: Option<bool>,
    /// What one call may take, with all its retries.
    pub deadline: Duration,
}

impl S3Settings {
    /// A bucket that is reached as the environment says.
    pub fn new(bucket: impl Into<String>) -> Self {
        Self {
            bucket: bucket.into(),
            endpoint: None,
            region: None,
            access_key_id: None,
            secret_access_key: None,
            session_token: None,
            path_style: None,
            allow_http: None,
            deadline: S3_DEADLINE_DEFAULT,
        }
    }

    pub(super) fn client(&self) -> Result<AmazonS3, BlobError> {
        let refused = |why: String| BlobError::S3Settings { why };
        let builder = self.with_endpoint(self.with_values(AmazonS3Builder::from_env()))?;
        builder.with_retry(self.retries()).build().map_err(|error| refused(error.to_string()))
    }

    fn with_values(&self, builder: AmazonS3Builder) -> AmazonS3Builder {
        let flag = |value: Option<bool>| value.map(|value| value.to_string());
        let time = |time: Duration| Some(format!("{}ms", time.as_millis()));
        let values = [
            (AmazonS3ConfigKey::Bucket, Some(self.bucket.clone())),
            (S3Endpoint, self.endpoint.clone()),
            (AmazonS3ConfigKey::Region, self.region.clone()),
            (AmazonS3ConfigKey::AccessKeyId, self.access_key_id.clone()),
            (AmazonS3ConfigKey::SecretAccessKey, self.secret_access_key.clone()),
            (AmazonS3ConfigKey::Token, self.session_token.clone()),
            (VirtualHostedStyleRequest, flag(self.path_style.map(|path_style| !path_style))),
            (Client(AllowHttp), flag(self.allow_http)),
            // One at a time is all we remove, and plain DELETE is what every store has.
            (DisableBulkDelete, flag(Some(true))),
            (Client(ConnectTimeout), time(CONNECT_TIMEOUT_MAX.min(self.deadline / 3))),
            // A store that says nothing for half of the time is asked once more.
            (Client(ReadTimeout), time(self.deadline / 2)),
            (Client(Timeout), time(self.deadline)),
        ];
        values.into_iter().fold(builder, |builder, (key, value)| match value {
            Some(value) => builder.with_config(key, value),
            None => builder,
        })
    }

    /// Refuses an endpoint that the client would only refuse at the first call, and names the bucket in the host where that is asked for.
    fn with_endpoint(&self, builder: AmazonS3Builder) -> Result<AmazonS3Builder, BlobError> {
        let is_true = |key| builder.get_config_value(&key).is_some_and(|value| value == "true");
        let Some(endpoint) = builder.get_config_value(&S3Endpoint).or_else(|| builder.get_config_value(&Endpoint)) else {
            return Ok(builder);
        };
        let refused = |why: &str| Err(BlobError::S3Settings { why: format!("the endpoint `{endpoint}` {why}") });
        let host = match endpoint.split_once("://") {
            Some(("https", host)) => host,
            Some(("http", host)) if is_true(Client(AllowHttp)) => host,
            Some(("http", _)) => return refused("is not https; where that is meant, set AWS_ALLOW_HTTP=true"),
            _ => return refused("does not begin with https://"),
        };
        if !is_true(VirtualHostedStyleRequest) || host.starts_with(&format!("{}.", self.bucket)) {
            return Ok(builder);
        }
        let scheme = endpoint.strip_suffix(host).unwrap_or_default();
        let endpoint = format!("{scheme}{}.{host}", self.bucket);
        Ok(builder.with_config(S3Endpoint, endpoint))
    }

    /// Retries end before the deadline does, so that what is reported is the store's own error.
    fn retries(&self) -> RetryConfig {
        let backoff = BackoffConfig { init_backoff: FIRST_RETRY_AFTER, max_backoff: FIRST_RETRY_AFTER.max(self.deadline / 10), base: 2. };
        RetryConfig { backoff, max_retries: RETRIES_MAX, retry_timeout: self.deadline * 3 / 4 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(endpoint: &str) -> S3Settings {
        S3Settings { endpoint: Some(endpoint.into()), ..S3Settings::new("heaps") }
    }

    fn endpoint(settings: &S3Settings) -> Result<String, String> {
        let builder = settings.with_values(AmazonS3Builder::new());
        let built = settings.with_endpoint(builder).map_err(|error| error.to_string())?;
        Ok(built.get_config_value(&S3Endpoint).unwrap_or_default())
    }

    #[test]
    fn an_endpoint_is_https_unless_http_is_allowed() {
        assert_eq!(endpoint(&at("https://s3.example")), Ok("https://s3.example".into()));
        let plain = at("http://s3.example");
        assert!(endpoint(&plain).expect_err("refused").contains("set AWS_ALLOW_HTTP=true"));
        assert!(endpoint(&S3Settings { allow_http: Some(true), ..plain }).is_ok());
        assert!(endpoint(&at("s3.example")).expect_err("refused").contains("does not begin with https://"));
    }

    #[test]
    fn the_bucket_goes_into_the_host_where_paths_are_not_wanted() {
        let hosted = |url| endpoint(&S3Settings { path_style: Some(false), ..at(url) });
        assert_eq!(hosted("https://s3.example:9000"), Ok("https://heaps.s3.example:9000".into()));
        assert_eq!(hosted("https://heaps.s3.example"), Ok("https://heaps.s3.example".into()));
        assert_eq!(endpoint(&S3Settings { path_style: Some(true), ..at("https://s3.example") }), Ok("https://s3.example".into()));
    }

    #[test]
    fn half_a_credential_is_refused() {
        let settings = S3Settings { secret_access_key: Some("secret".into()), ..S3Settings::new("heaps") };
        let built = settings.with_values(AmazonS3Builder::new()).build();
        assert!(built.is_err());
    }
}
