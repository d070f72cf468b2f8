//! Who may run tests: tokens of user and password, encrypted with the server's public RSA key.

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use aws_lc_rs::rsa::{
    OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, OaepPublicEncryptingKey, Pkcs1PrivateDecryptingKey,
    Pkcs1PublicEncryptingKey, PrivateDecryptingKey, PublicEncryptingKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sha2::{Digest as _, Sha256};

/// What cannot be done with keys and users.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// A file cannot be read.
    #[error("read {path}: {source}")]
    Read {
        /// Which.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A file holds no key that can be used.
    #[error("{path}: no RSA {kind} key of 2048 bits or more in PEM")]
    Key {
        /// Which.
        path: String,
        /// `private` or `public`.
        kind: &'static str,
    },
    /// The user and password are too long for the key.
    #[error("encrypt user and password: too long for the key")]
    Encrypt,
}

/// How tokens are padded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Padding {
    /// OAEP with SHA-1, as iperf3 from 3.17 on.
    #[default]
    Oaep,
    /// PKCS#1 v1.5, as before.
    Pkcs1,
}

/// Makes the token of a client, for the server whose public key is in `key_path`.
///
/// # Errors
/// See [`AuthError`].
pub fn token(
    user: &str,
    password: &str,
    key_path: &Path,
    padding: Padding,
    unix_s: u64,
) -> Result<String, AuthError> {
    let unusable = || AuthError::Key { path: key_path.display().to_string(), kind: "public" };
    let key = public_key(&pem(key_path)?).ok_or_else(unusable)?;
    let plain = format!("user: {user}\npwd:  {password}\nts:   {unix_s}");
    let mut room = vec![0; key.key_size_bytes()];
    let sealed = match padding {
        Padding::Oaep => OaepPublicEncryptingKey::new(key).and_then(|k| {
            k.encrypt(&OAEP_SHA1_MGF1SHA1, plain.as_bytes(), &mut room, None).map(|b| b.to_vec())
        }),
        Padding::Pkcs1 => Pkcs1PublicEncryptingKey::new(key)
            .and_then(|k| k.encrypt(plain.as_bytes(), &mut room).map(|b| b.to_vec())),
    };
    Ok(BASE64.encode(sealed.map_err(|_unspecified| AuthError::Encrypt)?))
}

/// The users that a server knows, and its key.
pub struct Gate {
    key: PrivateDecryptingKey,
    padding: Padding,
    users: Vec<(String, String)>,
    skew_s: u64,
    /// Tokens that were used, with their times: a token that was overheard opens nothing twice.
    used: Mutex<Vec<(String, u64)>>,
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("users", &self.users.len()).finish_non_exhaustive()
    }
}

impl Gate {
    /// Reads the private key (PEM, PKCS#8 or PKCS#1) and the users (`USER,SHA-256 of {USER}PASSWORD in hex`, a line each;
    /// lines with `#` are skipped). Tokens may be `skew_s` seconds old or early.
    ///
    /// # Errors
    /// See [`AuthError`].
    pub fn open(
        key_path: &Path,
        users_path: &Path,
        padding: Padding,
        skew_s: u64,
    ) -> Result<Self, AuthError> {
        let unusable = || AuthError::Key { path: key_path.display().to_string(), kind: "private" };
        let key = private_key(&pem(key_path)?).ok_or_else(unusable)?;
        let users = parse_users(&read(users_path)?);
        Ok(Self { key, padding, users, skew_s, used: Mutex::default() })
    }

    /// Whether a token is that of a user, made about `now_s` (Unix seconds). Says who, or why not; a client is told no
    /// reason.
    ///
    /// # Errors
    /// The reason, for the server's log.
    pub fn check(&self, token: &str, now_s: u64) -> Result<String, &'static str> {
        let sealed = BASE64.decode(token.trim()).map_err(|_bad| "token is no base64")?;
        let plain = self.decrypt(&sealed).ok_or("token cannot be decrypted")?;
        let (user, password, made_s) = parse_token(&plain).ok_or("token cannot be read")?;
        if now_s.abs_diff(made_s) > self.skew_s {
            return Err("token is too old or early");
        }
        let hash = hex(&Sha256::digest(format!("{{{user}}}{password}")));
        let known =
            self.users.iter().any(|(name, stored)| *name == user && stored.eq_ignore_ascii_case(&hash));
        if !known {
            return Err("unknown user or wrong password");
        }
        self.use_once(token, made_s, now_s)?;
        Ok(user)
    }

    fn use_once(&self, token: &str, made_s: u64, now_s: u64) -> Result<(), &'static str> {
        let mut used = self.used.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        used.retain(|(_, made_s)| now_s.abs_diff(*made_s) <= self.skew_s);
        if used.iter().any(|(earlier, _)| earlier == token) {
            return Err("token was used before");
        }
        used.push((token.to_owned(), made_s));
        Ok(())
    }

    fn decrypt(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let key = self.key.clone();
        let mut room = vec![0; key.key_size_bytes()];
        match self.padding {
            Padding::Oaep => {
                let key = OaepPrivateDecryptingKey::new(key).ok()?;
                key.decrypt(&OAEP_SHA1_MGF1SHA1, sealed, &mut room, None).ok().map(|b| b.to_vec())
            }
            Padding::Pkcs1 => {
                let key = Pkcs1PrivateDecryptingKey::new(key).ok()?;
                key.decrypt(sealed, &mut room).ok().map(|b| b.to_vec())
            }
        }
    }
}

fn parse_users(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter(|line| !line.contains('#'));
    let pairs = lines.filter_map(|line| line.split_once(','));
    pairs.map(|(user, hash)| (user.trim().to_owned(), hash.trim().to_owned())).collect()
}

/// User, password and time of a token.
fn parse_token(plain: &[u8]) -> Option<(String, String, u64)> {
    let text = std::str::from_utf8(plain).ok()?;
    let (user, rest) = text.strip_prefix("user: ")?.split_once("\npwd:  ")?;
    let (password, time) = rest.rsplit_once("\nts:   ")?;
    let time = time.trim_end_matches(['\0', '\n']).parse().ok()?;
    Some((user.to_owned(), password.to_owned(), time))
}

fn read(path: &Path) -> Result<String, AuthError> {
    fs::read_to_string(path).map_err(|source| AuthError::Read { path: path.display().to_string(), source })
}

/// Label and content of the first PEM block; empty if there is none.
fn pem(path: &Path) -> Result<(String, Vec<u8>), AuthError> {
    Ok(parse_pem(&read(path)?).unwrap_or_default())
}

fn parse_pem(text: &str) -> Option<(String, Vec<u8>)> {
    let (_, rest) = text.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (body, _) = rest.split_once("-----END ")?;
    let body: String = body.split_ascii_whitespace().collect();
    Some((label.to_owned(), BASE64.decode(body).ok()?))
}

fn public_key((label, der): &(String, Vec<u8>)) -> Option<PublicEncryptingKey> {
    if label != "PUBLIC KEY" { None } else { PublicEncryptingKey::from_der(der).ok() }
}

fn private_key((label, der): &(String, Vec<u8>)) -> Option<PrivateDecryptingKey> {
    match label.as_str() {
        "PRIVATE KEY" => PrivateDecryptingKey::from_pkcs8(der).ok(),
        "RSA PRIVATE KEY" => PrivateDecryptingKey::from_pkcs8(&wrap_pkcs1(der)).ok(),
        _ => None,
    }
}

/// PKCS#1 inside PKCS#8 (RFC 5208): version 0, rsaEncryption, the key as octets.
fn wrap_pkcs1(key: &[u8]) -> Vec<u8> {
    const VERSION: &[u8] = &[2, 1, 0];
    const RSA_ENCRYPTION: &[u8] = &[0x30, 13, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0];
    let content = [VERSION, RSA_ENCRYPTION, &der(4, key)].concat();
    der(0x30, &content)
}

/// One DER element.
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let significant = &length[length.iter().position(|&b| b != 0).unwrap_or(length.len() - 1)..];
    let mut element = vec![tag];
    if content.len() >= 0x80 {
        element.push(0x80 | significant.len() as u8);
    }
    element.extend_from_slice(significant);
    element.extend_from_slice(content);
    element
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::encoding::AsDer;
    use aws_lc_rs::rsa::KeySize;
    use proptest::prelude::*;

    fn to_pem(label: &str, der: &[u8]) -> String {
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", BASE64.encode(der))
    }

    #[test]
    fn a_token_opens_the_gate_once_and_in_time() {
        let folder = std::env::temp_dir().join(format!("linerate-auth-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let key = PrivateDecryptingKey::generate(KeySize::Rsa2048).unwrap();
        let private = AsDer::<aws_lc_rs::encoding::Pkcs8V1Der<'_>>::as_der(&key).unwrap();
        let public = AsDer::<aws_lc_rs::encoding::PublicKeyX509Der<'_>>::as_der(&key.public_key()).unwrap();
        let (private_path, public_path) = (folder.join("private.pem"), folder.join("public.pem"));
        let users_path = folder.join("users.csv");
        fs::write(&private_path, to_pem("PRIVATE KEY", private.as_ref())).unwrap();
        fs::write(&public_path, to_pem("PUBLIC KEY", public.as_ref())).unwrap();
        let hash = hex(&Sha256::digest("{mario}rossi"));
        fs::write(&users_path, format!("# user,hash\nmario,{hash}\n")).unwrap();

        for padding in [Padding::Oaep, Padding::Pkcs1] {
            let gate = Gate::open(&private_path, &users_path, padding, 10).unwrap();
            let make = |password, at| token("mario", password, &public_path, padding, at).unwrap();
            let good = make("rossi", 1000);
            assert_eq!(gate.check(&good, 1005), Ok("mario".into()));
            assert_eq!(gate.check(&good, 1005), Err("token was used before"));
            assert_eq!(gate.check(&make("rossi", 1000), 1011), Err("token is too old or early"));
            assert_eq!(gate.check(&make("verdi", 1000), 1000), Err("unknown user or wrong password"));
            assert!(gate.check("AAAA", 1000).is_err() && gate.check("?", 1000).is_err());
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn lengths_are_encoded_as_der_has_them() {
        assert_eq!(der(4, &[7; 3]), [4, 3, 7, 7, 7]);
        assert_eq!(der(4, &[0; 200])[..3], [4, 0x81, 200]);
        assert_eq!(der(4, &[0; 1000])[..4], [4, 0x82, 3, 0xe8]);
        assert_eq!(der(4, &[]), [4, 0]);
    }

    proptest! {
        #[test]
        fn any_plaintext_and_pem_is_read_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _token = parse_token(&bytes);
            let text = String::from_utf8_lossy(&bytes);
            let _pem = parse_pem(&format!("-----BEGIN {text}-----END "));
        }

        #[test]
        fn passwords_may_hold_anything(password in "[^\0]*") {
            let plain = format!("user: u\npwd:  {password}\nts:   77");
            prop_assert_eq!(parse_token(plain.as_bytes()), Some(("u".into(), password, 77)));
        }
    }
}
