//! A test issuer of JWTs: keys of every kind, a JWKS endpoint, and tokens with arbitrary contents, valid or not.

use crate::fixture::{Folders, Server};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

pub const ISSUER: &str = "https://id.example/";
pub const AUDIENCE: &str = "heapstead";

/// Publishes keys on its own port, from its own thread, because a test waits for its server and the server for the keys. It goes down when
/// dropped.
pub struct Issuer {
    pub url: String,
    address: SocketAddr,
    published: Arc<Mutex<Value>>,
    fetches: Arc<AtomicUsize>,
    down: Arc<AtomicBool>,
    serving: Option<JoinHandle<()>>,
}

impl Issuer {
    pub fn publishing(keys: &[&Key]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (published, fetches, down) =
            (Arc::new(Mutex::new(Value::Null)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (shown, count, over) = (published.clone(), fetches.clone(), down.clone());
        let serving = std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok).take_while(|_| !over.load(SeqCst)) {
                count.fetch_add(1, SeqCst);
                let body = shown.lock().expect("keys").to_string();
                let _ = answer(stream, &body);
            }
        });
        let url = format!("http://{address}/keys.json");
        let issuer = Self { url, address, published, fetches, down, serving: Some(serving) };
        issuer.publish(keys);
        issuer
    }

    pub fn publish(&self, keys: &[&Key]) {
        *self.published.lock().expect("keys") = json!({ "keys": keys.iter().map(|key| key.jwk()).collect::<Vec<_>>() });
    }

    pub fn fetches(&self) -> usize {
        self.fetches.load(SeqCst)
    }

    /// Starts a server that accepts this issuer's tokens.
    pub fn server(&self, arguments: &[&str]) -> Server {
        let own = ["--jwks-url", &self.url, "--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE];
        Server::start_with(&Folders::new(), &[&own, arguments].concat())
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.down.store(true, SeqCst);
        // Wakes the thread, so that it notices the end.
        let _ = TcpStream::connect(self.address);
        let _ = self.serving.take().map(JoinHandle::join);
    }
}

fn answer(mut stream: TcpStream, body: &str) -> io::Result<()> {
    for line in BufReader::new(stream.try_clone()?).lines() {
        if line?.is_empty() {
            break;
        }
    }
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all((head + body).as_bytes())
}

pub struct Key {
    id: &'static str,
    signer: Signer,
}

enum Signer {
    Ed25519(Box<Ed25519KeyPair>),
    P256(Box<EcdsaKeyPair>),
    Rsa(Box<RsaKeyPair>),
}

impl Key {
    pub fn ed25519(id: &'static str) -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        Self { id, signer: Signer::Ed25519(Box::new(Ed25519KeyPair::from_pkcs8(document.as_ref()).expect("a key"))) }
    }

    pub fn p256(id: &'static str) -> Self {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).expect("a key");
        Self { id, signer: Signer::P256(Box::new(pair)) }
    }

    /// Always the same key, because generating one is slow and it need not be secret.
    pub fn rsa(id: &'static str) -> Self {
        let pair = RsaKeyPair::from_pkcs8(include_bytes!("rsa_for_tests.pk8")).expect("a key");
        Self { id, signer: Signer::Rsa(Box::new(pair)) }
    }

    pub fn algorithm(&self) -> &'static str {
        match &self.signer {
            Signer::Ed25519(_) => "EdDSA",
            Signer::P256(_) => "ES256",
            Signer::Rsa(_) => "RS256",
        }
    }

    /// The published form.
    pub fn jwk(&self) -> Value {
        let public = self.public();
        let mut jwk = match &self.signer {
            Signer::Ed25519(_) => json!({ "kty": "OKP", "crv": "Ed25519", "x": base64url(&public) }),
            Signer::P256(_) => json!({ "kty": "EC", "crv": "P-256", "x": base64url(&public[1..33]), "y": base64url(&public[33..]) }),
            Signer::Rsa(pair) => {
                let parts: ring::rsa::PublicKeyComponents<Vec<u8>> = pair.public().into();
                json!({ "kty": "RSA", "n": base64url(&parts.n), "e": base64url(&parts.e) })
            }
        };
        jwk["kid"] = self.id.into();
        jwk["use"] = "sig".into();
        jwk["alg"] = self.algorithm().into();
        jwk
    }

    pub fn public(&self) -> Vec<u8> {
        match &self.signer {
            Signer::Ed25519(pair) => pair.public_key().as_ref().to_vec(),
            Signer::P256(pair) => pair.public_key().as_ref().to_vec(),
            Signer::Rsa(pair) => pair.public_key().as_ref().to_vec(),
        }
    }

    pub fn header(&self) -> Value {
        json!({ "typ": "JWT", "alg": self.algorithm(), "kid": self.id })
    }

    pub fn token(&self, claims: &Value) -> String {
        self.token_with(&self.header(), claims)
    }

    /// Signed with this key's algorithm, whatever the header says.
    pub fn token_with(&self, header: &Value, claims: &Value) -> String {
        let message = unsigned(header, claims);
        let random = SystemRandom::new();
        let signature = match &self.signer {
            Signer::Ed25519(pair) => pair.sign(message.as_bytes()).as_ref().to_vec(),
            Signer::P256(pair) => pair.sign(&random, message.as_bytes()).expect("a signature").as_ref().to_vec(),
            Signer::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message.as_bytes(), &mut signature).expect("a signature");
                signature
            }
        };
        format!("{message}.{}", base64url(&signature))
    }
}

/// The signed part: header and claims.
pub fn unsigned(header: &Value, claims: &Value) -> String {
    format!("{}.{}", base64url(header.to_string().as_bytes()), base64url(claims.to_string().as_bytes()))
}

pub fn base64url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Unix time this many seconds from now.
pub fn secs_from_now(secs: i64) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs();
    i64::try_from(now).expect("a time") + secs
}

/// Valid claims.
pub fn claims(subject: &str) -> Value {
    json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": subject, "exp": secs_from_now(300) })
}
