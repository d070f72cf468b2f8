//! Challenge and response with a shared secret: HMAC-SHA256 (RFC 2104, FIPS 180-4) over both ends' random nonces.
//!
//! Each end proves that it knows the secret, and nothing secret crosses the wire. The two directions use different
//! labels, so that an answer can't be played back to the one who asked.

use std::fmt::Write as _;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Shortest secret that is taken, bytes.
pub const MIN_SECRET_BYTES: usize = 8;

/// Who proves itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prover {
    /// The end that connected.
    Client,
    /// The end that listens.
    Server,
}

/// A secret that both ends know.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Why a secret file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file can't be read.
    #[error("read secret file {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The kernel's reason.
        source: std::io::Error,
    },
    /// Too short to be a secret.
    #[error(
        "secret file {path}: needs at least {MIN_SECRET_BYTES} bytes (try: head -c 24 /dev/urandom | base64 > {path})"
    )]
    TooShort {
        /// The file.
        path: String,
    },
}

impl Secret {
    /// Reads a secret from a file; white space at its end does not count.
    ///
    /// # Errors
    /// Where the file can't be read, or is too short.
    pub fn from_file(path: &std::path::Path) -> Result<Self, SecretError> {
        let name = || path.display().to_string();
        let bytes = std::fs::read(path).map_err(|source| SecretError::Read { path: name(), source })?;
        let secret = bytes.trim_ascii_end();
        if secret.len() < MIN_SECRET_BYTES {
            return Err(SecretError::TooShort { path: name() });
        }
        Ok(Self(secret.to_vec()))
    }

    /// The proof that `prover` sends: hex of the HMAC over its label and both nonces.
    pub fn proof(&self, prover: Prover, client_nonce: &str, server_nonce: &str) -> String {
        let tag = self.mac(prover, client_nonce, server_nonce).finalize().into_bytes();
        to_hex(&tag)
    }

    /// Whether `proof` is right; takes the same time wherever it differs.
    pub fn accepts(&self, proof: &str, prover: Prover, client_nonce: &str, server_nonce: &str) -> bool {
        let Some(tag) = from_hex(proof) else { return false };
        self.mac(prover, client_nonce, server_nonce).verify_slice(&tag).is_ok()
    }

    fn mac(&self, prover: Prover, client_nonce: &str, server_nonce: &str) -> Hmac<Sha256> {
        let label = match prover {
            Prover::Client => "linerate client",
            Prover::Server => "linerate server",
        };
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        for part in [label, client_nonce, server_nonce] {
            // A length before each part, so that no two different lists of parts give the same bytes.
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
        mac
    }
}

/// A fresh random nonce, 32 bytes as hex.
///
/// # Errors
/// Where the kernel gives no random bytes.
pub fn nonce() -> std::io::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(to_hex(&bytes))
}

/// Lower-case hex.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // a String takes everything
        text
    })
}

/// Bytes of a hex text; `None` where it is none.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || digits.len() > 1024 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let value = |digit: u8| char::from(digit).to_digit(16).and_then(|v| u8::try_from(v).ok());
    digits.chunks_exact(2).map(|pair| Some(value(pair[0])? << 4 | value(pair[1])?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_secret_role_and_nonces_are_accepted() {
        let (ours, other) = (Secret(b"right horse".to_vec()), Secret(b"wrong horse".to_vec()));
        let proof = ours.proof(Prover::Client, "c", "s");
        assert!(ours.accepts(&proof, Prover::Client, "c", "s"));
        assert!(!other.accepts(&proof, Prover::Client, "c", "s"));
        assert!(!ours.accepts(&proof, Prover::Server, "c", "s"));
        assert!(!ours.accepts(&proof, Prover::Client, "cs", ""));
        assert!(!ours.accepts(&proof[2..], Prover::Client, "c", "s"));
        assert!(!ours.accepts("no hex", Prover::Client, "c", "s"));
    }

    #[test]
    fn known_answer() {
        // RFC 4231 test case 2 checks the primitive that proof() stands on.
        let mut mac = Hmac::<Sha256>::new_from_slice(b"Jefe").unwrap();
        mac.update(b"what do ya want for nothing?");
        let tag = to_hex(&mac.finalize().into_bytes());
        assert_eq!(tag, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }

    #[test]
    fn hex_round_trips() {
        assert_eq!(from_hex(&to_hex(&[0, 0xab, 0xff])), Some(vec![0, 0xab, 0xff]));
        assert_eq!(from_hex("0"), None);
        assert_eq!(from_hex("zz"), None);
    }
}
