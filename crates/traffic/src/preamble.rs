//! The first 32 bytes of a TCP data connection, by which it proves that it belongs to the trial.
//!
//! | bytes | content |
//! |---|---|
//! | 0-5 | `LRDATA` |
//! | 6 | version, 1 |
//! | 7 | what the connection is for, see [`Purpose`] |
//! | 8-11 | stream number, little-endian |
//! | 12-15 | zero |
//! | 16-31 | the trial's token |

use crate::side::Token;

/// Length in bytes.
pub(crate) const LEN: usize = 32;

const MAGIC: &[u8; 6] = b"LRDATA";
const VERSION: u8 = 1;

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Purpose {
    /// Its stream's payload; from dut to peer where there are two.
    Data = 0,
    /// Payload from peer to dut, where that has a connection of its own.
    Back = 1,
    /// No payload: names the address from which tcp-crr connections may come.
    Prover = 2,
}

/// A proven claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) stream: u32,
    pub(crate) purpose: Purpose,
}

/// The bytes that prove `claim`.
pub(crate) fn encode(claim: Claim, token: &Token) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    bytes[..6].copy_from_slice(MAGIC);
    bytes[6] = VERSION;
    bytes[7] = claim.purpose as u8;
    bytes[8..12].copy_from_slice(&claim.stream.to_le_bytes());
    bytes[16..].copy_from_slice(token.bytes());
    bytes
}

/// The claim, if the token is right and all else is as it must be.
pub(crate) fn decode(bytes: &[u8; LEN], token: &Token) -> Option<Claim> {
    if !token.matches(&bytes[16..]) || bytes[..6] != *MAGIC || bytes[6] != VERSION || bytes[12..16] != [0; 4]
    {
        return None;
    }
    let purpose = match bytes[7] {
        0 => Purpose::Data,
        1 => Purpose::Back,
        2 => Purpose::Prover,
        _ => return None,
    };
    Some(Claim { stream: u32::from_le_bytes(bytes[8..12].try_into().ok()?), purpose })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_survive_the_wire() {
        let token = Token::random().unwrap();
        for purpose in [Purpose::Data, Purpose::Back, Purpose::Prover] {
            let claim = Claim { stream: 0x0102_0304, purpose };
            assert_eq!(decode(&encode(claim, &token), &token), Some(claim));
        }
    }

    #[test]
    fn one_wrong_bit_anywhere_fails_or_is_another_claim() {
        let token = Token::from_bytes([7; 16]);
        let claim = Claim { stream: 1, purpose: Purpose::Data };
        let right = encode(claim, &token);
        for bit in 0..LEN * 8 {
            let mut wrong = right;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(decode(&wrong, &token), Some(claim), "bit {bit}");
        }
        assert_eq!(decode(&[0; LEN], &Token::from_bytes([0; 16])), None);
    }
}
