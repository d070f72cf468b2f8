//! What a server allows.

use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;

use super::params::{Params, Refusal};
use super::wire::ErrorCode;

/// Bounds for all clients of a server.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Most tests at once; further clients are told that the server is busy. 1 is the way of iperf3.
    pub clients: usize,
    /// Longest test, seconds; it also refuses tests without end.
    pub duration_s: Option<u32>,
    /// Most bits a second of all streams of a test, both directions, and the seconds of the average.
    pub rate: Option<(u64, u32)>,
    /// Networks that may connect; all where none is named.
    pub allow: Vec<IpNet>,
    /// Clients may choose this server's CPU.
    pub pinning: bool,
    /// How long a receiver waits for data.
    pub receive: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clients: 128,
            duration_s: None,
            rate: None,
            allow: Vec::new(),
            pinning: false,
            receive: Duration::from_secs(120),
        }
    }
}

impl Limits {
    /// Whether an address may connect.
    pub fn allows(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.allow.is_empty() || self.allow.iter().any(|net| net.contains(&address))
    }

    /// Whether a test may run.
    ///
    /// # Errors
    /// What the client is told.
    pub fn check(&self, params: &Params) -> Result<(), Refusal> {
        if let Some(limit) = self.duration_s
            && (params.time_s == 0 || params.time_s + params.omit_s > limit)
        {
            let reason = format!("test of {} s, the limit is {limit} s (0 is no end)", params.time_s);
            return Err(Refusal { code: ErrorCode::MAX_DURATION, reason });
        }
        let asked = params.bandwidth.unwrap_or(0).saturating_mul(u64::from(params.streams()));
        if let Some((limit, _)) = self.rate
            && asked > limit
        {
            let reason = format!("{asked} bit/s asked for, the limit is {limit}");
            return Err(Refusal { code: ErrorCode::RATE_LIMIT, reason });
        }
        if params.flowlabel.is_some() && (params.reverse || params.bidir) {
            let reason = "IPv6 flow labels are not offered".into();
            return Err(Refusal { code: ErrorCode::PARAMS, reason });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_refuse_with_their_codes() {
        let limits = Limits { duration_s: Some(20), rate: Some((1_000_000, 5)), ..Limits::default() };
        let code = |params: Params| limits.check(&params).map_err(|r| r.code.0);
        assert_eq!(code(Params::default()), Ok(()));
        assert_eq!(code(Params { time_s: 0, num: 5, ..Params::default() }), Err(37));
        assert_eq!(code(Params { time_s: 15, omit_s: 6, ..Params::default() }), Err(37));
        assert_eq!(code(Params { bandwidth: Some(600_000), parallel: 2, ..Params::default() }), Err(27));
        assert_eq!(code(Params { bandwidth: Some(1_000_000), ..Params::default() }), Ok(()));
        let reverse = Params { flowlabel: Some(1), reverse: true, ..Params::default() };
        assert_eq!(code(reverse), Err(114));
    }

    #[test]
    fn networks_are_matched_in_either_notation() {
        let limits = Limits { allow: vec!["10.0.0.0/8".parse().unwrap()], ..Limits::default() };
        assert!(limits.allows("10.1.2.3".parse().unwrap()));
        assert!(limits.allows("::ffff:10.1.2.3".parse().unwrap()));
        assert!(!limits.allows("192.0.2.1".parse().unwrap()));
        assert!(Limits::default().allows("::1".parse().unwrap()));
    }
}
