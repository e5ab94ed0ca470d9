//! Verifies JWT signatures with public keys, using the crypto library of TLS. `none` and `HS…` are not implemented: the key of `HS…` is a
//! secret, so a published key cannot be misused as one.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use ring::signature as ring;

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory: |algorithm, key| Ok(Box::new(SignatureVerifier::new(*algorithm, key)?)),
    key_utils: KeyUtils::new_unimplemented(),
};

/// Must be called before any JWT is read.
pub fn install() {
    // An error means that an earlier call has installed it.
    let _ = PROVIDER.install_default();
}

struct SignatureVerifier {
    algorithm: Algorithm,
    method: Method,
    key: DecodingKey,
}

enum Method {
    Curve(&'static dyn ring::VerificationAlgorithm),
    Rsa(&'static ring::RsaParameters),
}

impl SignatureVerifier {
    fn new(algorithm: Algorithm, key: &DecodingKey) -> Result<Self> {
        let method = match algorithm {
            Algorithm::RS256 => Method::Rsa(&ring::RSA_PKCS1_2048_8192_SHA256),
            Algorithm::RS384 => Method::Rsa(&ring::RSA_PKCS1_2048_8192_SHA384),
            Algorithm::RS512 => Method::Rsa(&ring::RSA_PKCS1_2048_8192_SHA512),
            Algorithm::PS256 => Method::Rsa(&ring::RSA_PSS_2048_8192_SHA256),
            Algorithm::PS384 => Method::Rsa(&ring::RSA_PSS_2048_8192_SHA384),
            Algorithm::PS512 => Method::Rsa(&ring::RSA_PSS_2048_8192_SHA512),
            Algorithm::ES256 => Method::Curve(&ring::ECDSA_P256_SHA256_FIXED),
            Algorithm::ES384 => Method::Curve(&ring::ECDSA_P384_SHA384_FIXED),
            Algorithm::EdDSA => Method::Curve(&ring::ED25519),
            _ => return Err(ErrorKind::UnsupportedAlgorithm.into()),
        };
        if key.family() != algorithm.family() {
            return Err(ErrorKind::InvalidAlgorithm.into());
        }
        Ok(Self { algorithm, method, key: key.clone() })
    }
}

impl Verifier<Vec<u8>> for SignatureVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), signature::Error> {
        let checked = match (&self.method, self.key.kind()) {
            (Method::Curve(method), DecodingKeyKind::SecretOrDer(key)) => {
                ring::UnparsedPublicKey::new(*method, key).verify(message, signature)
            }
            (Method::Rsa(method), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                ring::RsaPublicKeyComponents { n, e }.verify(method, message, signature)
            }
            _ => return Err(signature::Error::new()),
        };
        checked.map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for SignatureVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
