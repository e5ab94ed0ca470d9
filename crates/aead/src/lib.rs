//! Authenticated encryption with a random nonce.
//!
//! ```text
//! 12 nonce │ AES-256-GCM(plain) │ 16 tag
//! ```
//! Formats that contain it put their header before it and pass the header as associated data.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::Prk;
use ring::rand::{SecureRandom, SystemRandom};

pub const KEY_BYTES: usize = 32;

#[derive(Debug)]
pub struct AeadKey(LessSafeKey);

/// Encryption fails only without randomness. Decryption fails if anything differs: key, associated data, or a bit of the sealed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AeadError {
    #[error("a key has {KEY_BYTES} bytes")]
    KeyLength,
    #[error("the operating system gave no random bytes")]
    Randomness,
    #[error("authentication failed")]
    Authentication,
}

impl AeadKey {
    pub fn new(key: &[u8]) -> Result<Self, AeadError> {
        UnboundKey::new(&AES_256_GCM, key).map(|key| Self(LessSafeKey::new(key))).map_err(|_| AeadError::KeyLength)
    }

    /// Derives a key with HKDF. The parts of `info` are concatenated.
    pub fn derive(master: &Prk, info: &[&[u8]]) -> Result<Self, AeadError> {
        let derived = master.expand(info, &AES_256_GCM).map_err(|_| AeadError::KeyLength)?;
        Ok(Self(LessSafeKey::new(UnboundKey::from(derived))))
    }

    /// Appends the sealed form of `plain` to `out`.
    pub fn seal(&self, associated: &[u8], plain: &[u8], out: &mut Vec<u8>) -> Result<(), AeadError> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(|_| AeadError::Randomness)?;
        out.extend(nonce);
        let begin = out.len();
        out.extend(plain);
        let tag = self
            .0
            .seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), Aad::from(associated), &mut out[begin..])
            .map_err(|_| AeadError::Authentication)?;
        out.extend(tag.as_ref());
        Ok(())
    }

    pub fn open(&self, associated: &[u8], sealed: &[u8]) -> Result<Vec<u8>, AeadError> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>().ok_or(AeadError::Authentication)?;
        let mut plain = sealed.to_vec();
        let opened = self.0.open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::from(associated), &mut plain);
        let length = opened.map_err(|_| AeadError::Authentication)?.len();
        plain.truncate(length);
        Ok(plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> AeadKey {
        AeadKey::new(&[byte; KEY_BYTES]).expect("a key")
    }

    fn sealed(plain: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        key(1).seal(b"header", plain, &mut out).expect("sealed");
        out
    }

    #[test]
    fn sealed_bytes_open_only_with_their_key_and_associated_data() {
        let sealed = sealed(b"text");
        assert_eq!(key(1).open(b"header", &sealed).as_deref(), Ok(b"text".as_slice()));
        assert_eq!(key(2).open(b"header", &sealed), Err(AeadError::Authentication));
        assert_eq!(key(1).open(b"other", &sealed), Err(AeadError::Authentication));
    }

    #[test]
    fn every_flipped_bit_and_every_truncation_is_noticed() {
        let sealed = sealed(b"text");
        for at in 0..sealed.len() * 8 {
            let mut forged = sealed.clone();
            forged[at / 8] ^= 1 << (at % 8);
            assert!(key(1).open(b"header", &forged).is_err(), "bit {at}");
        }
        for length in 0..sealed.len() {
            assert!(key(1).open(b"header", &sealed[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn sealing_twice_gives_different_bytes_after_what_was_there() {
        let mut out = b"header".to_vec();
        key(1).seal(b"", b"text", &mut out).expect("sealed");
        assert!(out.starts_with(b"header"));
        assert_ne!(sealed(b"text"), sealed(b"text"));
    }

    #[test]
    fn a_key_of_another_length_is_refused() {
        assert_eq!(AeadKey::new(&[0; 31]).err(), Some(AeadError::KeyLength));
    }
}
