//! What one end of a trial needs to know, and the token by which its connections prove themselves.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use linerate_model::Trial;
use linerate_sys::SysError;

use crate::error::Result;

/// 16 random bytes that name one trial: who knows them belongs to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Token([u8; 16]);

impl Token {
    /// Length in bytes.
    pub const LEN: usize = 16;

    /// A new token from the kernel's random source.
    pub fn random() -> Result<Self> {
        random().map(Self)
    }

    /// The token with these bytes, as received over the control connection.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes, to be sent over the control connection.
    pub fn bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Whether `candidate` is this token or its beginning. Takes the same time wherever they differ.
    pub fn matches(&self, candidate: &[u8]) -> bool {
        constant_time_equal(candidate, &self.0[..candidate.len().min(Self::LEN)])
    }

    /// 14 bits of it, for the header of a udp-stream datagram.
    pub(crate) fn tag(&self) -> u16 {
        u16::from_le_bytes([self.0[0], self.0[1]]) & 0x3fff
    }
}

// The token is as good as a password for the length of a trial: keep it out of logs.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// One end of one trial.
#[derive(Debug, Clone)]
pub struct TrialSide {
    /// What is to be run; the caller has checked it (`Trial::check`).
    pub trial: Trial,
    /// The trial's token, the same on both ends.
    pub token: Token,
    /// Address under test of this node; its port is not used. The server listens on it, the client connects from it.
    pub local: SocketAddr,
}

/// 16 bytes from the kernel's random source.
pub(crate) fn random() -> Result<[u8; 16]> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|e| {
        let cause = e.raw_os_error().map_or_else(|| io::Error::other(e), io::Error::from_raw_os_error);
        SysError::new("getrandom", "16 bytes", cause)
    })?;
    Ok(bytes)
}

/// Compares without telling by its time where two byte strings differ.
pub(crate) fn constant_time_equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && std::hint::black_box(a.iter().zip(b).fold(0, |sum, (x, y)| sum | (x ^ y))) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_matches_itself_and_its_beginning_only() {
        let token = Token::random().unwrap();
        assert!(token.matches(token.bytes()));
        assert!(token.matches(&token.bytes()[..3]));
        let mut other = *token.bytes();
        other[15] ^= 1;
        assert!(!token.matches(&other));
        assert!(!token.matches(&[0; 17]));
        assert_ne!(Token::random().unwrap(), token);
        assert_eq!(format!("{token:?}"), "Token(..)");
    }
}
