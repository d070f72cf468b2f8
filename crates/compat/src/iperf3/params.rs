//! The parameters of a test, which the client sends to the server as JSON.

use serde_json::{Map, Value, json};

use super::error::ProtocolError;
use super::lenient::{flag, integer, text, unsigned};
use super::wire::ErrorCode;

/// Longest UDP datagram over IPv4, bytes of payload.
pub const UDP_LEN_MAX: u32 = 65507;
/// Longest TCP block, bytes.
pub const TCP_LEN_MAX: u32 = 1 << 20;
/// Default TCP block, bytes.
pub const TCP_LEN: u32 = 128 << 10;
/// UDP block where the connection tells none, bytes.
pub const UDP_LEN: u32 = 1460;
/// Most streams a direction.
pub const PARALLEL_MAX: u32 = 128;
/// Longest test, seconds.
pub const TIME_MAX: u32 = 86400;
/// Longest omitted time, seconds.
pub const OMIT_MAX: u32 = 600;
/// Largest socket buffer, bytes.
pub const WINDOW_MAX: u32 = 512 << 20;
/// Largest segment, bytes.
pub const MSS_MAX: u32 = 32767;
/// Most blocks in a burst.
pub const BURST_MAX: u32 = 1000;

/// What carries the streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
}

impl Transport {
    /// Its name in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        }
    }
}

/// Merged datagrams of UDP (segmentation offload on send, on receive).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offload {
    /// Senders hand several datagrams to the kernel as one (`UDP_SEGMENT`).
    pub gso: bool,
    /// Receivers take several datagrams as one (`UDP_GRO`).
    pub gro: bool,
}

/// One test, as client and server agree on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// What carries the streams.
    pub transport: Transport,
    /// Seconds at the start that do not count.
    pub omit_s: u32,
    /// Seconds that count; 0 is without end.
    pub time_s: u32,
    /// Bytes to move over all streams of a direction; 0 is no limit.
    pub num: u64,
    /// Blocks to move over all streams of a direction; 0 is no limit.
    pub blockcount: u64,
    /// Streams a direction.
    pub parallel: u32,
    /// Bytes a block (TCP) or datagram (UDP).
    pub len: u32,
    /// The server sends.
    pub reverse: bool,
    /// Both send.
    pub bidir: bool,
    /// Both socket buffers, bytes.
    pub window: Option<u32>,
    /// TCP_MAXSEG, bytes.
    pub mss: Option<u32>,
    /// TCP_NODELAY.
    pub nodelay: bool,
    /// Bits a second of each stream; absent is unlimited.
    pub bandwidth: Option<u64>,
    /// Blocks sent back to back before pacing waits; 0 is one.
    pub burst: u32,
    /// Bits a second that the kernel paces each stream to; 0 is none.
    pub fqrate: u64,
    /// Type of service byte.
    pub tos: u8,
    /// IPv6 flow label.
    pub flowlabel: Option<u32>,
    /// TCP_CONGESTION.
    pub congestion: Option<String>,
    /// Put before each line of output.
    pub title: Option<String>,
    /// Copied to the JSON output.
    pub extra_data: Option<String>,
    /// The server's output goes to the client with its results.
    pub server_output: bool,
    /// UDP sequence numbers have 64 bits.
    pub counters_64bit: bool,
    /// The payload repeats the ten digits.
    pub repeating_payload: bool,
    /// sendfile(2) instead of write(2).
    pub zerocopy: bool,
    /// IP_MTU_DISCOVER=DO.
    pub dont_fragment: bool,
    /// CPU of the server.
    pub server_affinity: Option<u32>,
    /// MPTCP.
    pub mptcp: bool,
    /// Received bytes are dropped in the kernel (MSG_TRUNC).
    pub skip_rx_copy: bool,
    /// Merged UDP datagrams.
    pub offload: Offload,
    /// Who asks: an encrypted user and password.
    pub authtoken: Option<String>,
    /// Informational.
    pub client_version: Option<String>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            transport: Transport::Tcp,
            omit_s: 0,
            time_s: 10,
            num: 0,
            blockcount: 0,
            parallel: 1,
            len: TCP_LEN,
            reverse: false,
            bidir: false,
            window: None,
            mss: None,
            nodelay: false,
            bandwidth: None,
            burst: 0,
            fqrate: 0,
            tos: 0,
            flowlabel: None,
            congestion: None,
            title: None,
            extra_data: None,
            server_output: false,
            counters_64bit: false,
            repeating_payload: false,
            zerocopy: false,
            dont_fragment: false,
            server_affinity: None,
            mptcp: false,
            skip_rx_copy: false,
            offload: Offload::default(),
            authtoken: None,
            client_version: None,
        }
    }
}

/// Parameters that a server does not take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Refusal {
    /// What the client is told.
    pub code: ErrorCode,
    /// Why.
    pub reason: String,
}

impl From<ProtocolError> for Refusal {
    fn from(error: ProtocolError) -> Self {
        Self { code: ErrorCode::PARAMS, reason: error.to_string() }
    }
}

impl Params {
    /// Streams in all.
    pub fn streams(&self) -> u32 {
        if self.bidir { self.parallel * 2 } else { self.parallel }
    }

    /// Whether the client sends on its stream `index` (order of creation).
    pub fn client_sends(&self, index: u32) -> bool {
        if self.bidir { index < self.parallel } else { !self.reverse }
    }

    /// Bytes after which a direction is complete; none where only time ends it.
    pub fn target_bytes(&self) -> Option<u64> {
        match (self.num, self.blockcount) {
            (0, 0) => None,
            (0, blocks) => Some(blocks.saturating_mul(u64::from(self.len))),
            (bytes, _) => Some(bytes),
        }
    }

    /// What the client sends.
    pub fn encode(&self) -> Value {
        let mut map = Map::new();
        let mut put = |key: &str, value: Value| map.insert(key.to_owned(), value);
        put(if self.transport == Transport::Tcp { "tcp" } else { "udp" }, json!(true));
        put("omit", json!(self.omit_s));
        put("time", json!(self.time_s));
        put("num", json!(self.num));
        put("blockcount", json!(self.blockcount));
        put("parallel", json!(self.parallel));
        put("len", json!(self.len));
        put("pacing_timer", json!(1000));
        for (key, on) in [
            ("reverse", self.reverse),
            ("bidirectional", self.bidir),
            ("nodelay", self.nodelay),
            ("mptcp", self.mptcp),
        ] {
            if on {
                put(key, json!(true));
            }
        }
        for (key, on) in [
            ("get_server_output", self.server_output),
            ("udp_counters_64bit", self.counters_64bit),
            ("repeating_payload", self.repeating_payload),
            ("zerocopy", self.zerocopy),
            ("dont_fragment", self.dont_fragment),
            ("skip_rx_copy", self.skip_rx_copy),
        ] {
            if on {
                put(key, json!(1));
            }
        }
        let numbers = [
            ("window", self.window.map(u64::from)),
            ("MSS", self.mss.map(u64::from)),
            ("bandwidth", self.bandwidth.filter(|&b| b > 0)),
            ("burst", Some(u64::from(self.burst)).filter(|&b| b > 0)),
            ("fqrate", Some(self.fqrate).filter(|&r| r > 0)),
            ("TOS", Some(u64::from(self.tos)).filter(|&t| t > 0)),
            ("flowlabel", self.flowlabel.map(u64::from)),
            ("server_affinity", self.server_affinity.map(u64::from)),
        ];
        for (key, number) in numbers {
            if let Some(number) = number {
                put(key, json!(number));
            }
        }
        let texts = [
            ("congestion", &self.congestion),
            ("title", &self.title),
            ("extra_data", &self.extra_data),
            ("authtoken", &self.authtoken),
            ("client_version", &self.client_version),
        ];
        for (key, value) in texts {
            if let Some(value) = value {
                put(key, json!(value));
            }
        }
        if self.transport == Transport::Udp {
            put("gso", json!(u8::from(self.offload.gso)));
            put("gso_dg_size", json!(if self.offload.gso { self.len } else { 0 }));
            put("gso_bf_size", json!(gso_buffer(self.len)));
            put("gro", json!(u8::from(self.offload.gro)));
            put("gro_bf_size", json!(UDP_LEN_MAX));
        }
        Value::Object(map)
    }

    /// What a server makes of a client's message: any bytes, checked against the ranges of the protocol.
    ///
    /// # Errors
    /// No JSON object, or a value out of its range.
    pub fn decode(bytes: &[u8]) -> Result<Self, Refusal> {
        let unreadable = |reason: String| ProtocolError::Unreadable { what: "parameters", reason };
        let value: Value = serde_json::from_slice(bytes).map_err(|e| unreadable(e.to_string()))?;
        if !value.is_object() {
            return Err(unreadable("not an object".into()).into());
        }
        let params = Self::from_object(&value)?;
        params.check_mix()?;
        Ok(params)
    }

    fn from_object(value: &Value) -> Result<Self, Refusal> {
        if flag(value, "sctp") {
            return Err(Refusal { code: ErrorCode::PARAMS, reason: "SCTP is not offered".into() });
        }
        let transport = if flag(value, "udp") { Transport::Udp } else { Transport::Tcp };
        let amount = |key| unsigned(value, key).unwrap_or(0);
        let (num, blockcount) = (amount("num"), amount("blockcount"));
        let default_time = if num > 0 || blockcount > 0 { 0 } else { 10 };
        let ranged = |key: &'static str, range: std::ops::RangeInclusive<u32>, code| match integer(value, key)
        {
            None => Ok(None),
            Some(number) => u32::try_from(number)
                .ok()
                .filter(|n| range.contains(n))
                .map(Some)
                .ok_or_else(|| out_of_range(key, number, &range, code)),
        };
        let optional = |key, limit, code| Ok::<_, Refusal>(ranged(key, 0..=limit, code)?.filter(|&n| n > 0));
        let (len_range, len_code, len) = match transport {
            Transport::Tcp => (1..=TCP_LEN_MAX, ErrorCode::BLOCK_SIZE, TCP_LEN),
            Transport::Udp => (16..=UDP_LEN_MAX, ErrorCode::UDP_BLOCK_SIZE, UDP_LEN),
        };
        Ok(Self {
            transport,
            omit_s: ranged("omit", 0..=OMIT_MAX, ErrorCode::OMIT)?.unwrap_or(0),
            time_s: ranged("time", 0..=TIME_MAX, ErrorCode::DURATION)?.unwrap_or(default_time),
            num,
            blockcount,
            parallel: ranged("parallel", 1..=PARALLEL_MAX, ErrorCode::STREAMS)?.unwrap_or(1),
            len: ranged("len", len_range, len_code)?.unwrap_or(len),
            reverse: flag(value, "reverse"),
            bidir: flag(value, "bidirectional"),
            window: optional("window", WINDOW_MAX, ErrorCode::BUFFER_SIZE)?,
            mss: optional("MSS", MSS_MAX, ErrorCode::MSS)?,
            nodelay: flag(value, "nodelay"),
            bandwidth: unsigned(value, "bandwidth").filter(|&b| b > 0),
            burst: optional("burst", BURST_MAX, ErrorCode::BURST)?.unwrap_or(0),
            fqrate: amount("fqrate"),
            tos: optional("TOS", 255, ErrorCode::TOS)?.unwrap_or(0) as u8,
            flowlabel: unsigned(value, "flowlabel").filter(|f| (1..=0xfffff).contains(f)).map(|f| f as u32),
            congestion: text(value, "congestion"),
            title: text(value, "title"),
            extra_data: text(value, "extra_data"),
            server_output: flag(value, "get_server_output"),
            counters_64bit: flag(value, "udp_counters_64bit"),
            repeating_payload: flag(value, "repeating_payload"),
            zerocopy: flag(value, "zerocopy"),
            dont_fragment: flag(value, "dont_fragment"),
            server_affinity: unsigned(value, "server_affinity").filter(|&n| n <= 1024).map(|n| n as u32),
            mptcp: flag(value, "mptcp"),
            skip_rx_copy: flag(value, "skip_rx_copy"),
            offload: Offload { gso: flag(value, "gso"), gro: flag(value, "gro") },
            authtoken: text(value, "authtoken"),
            client_version: text(value, "client_version"),
        })
    }

    fn check_mix(&self) -> Result<(), Refusal> {
        if self.reverse && self.bidir {
            let reason = "reverse and bidirectional exclude each other".into();
            return Err(Refusal { code: ErrorCode::PARAMS, reason });
        }
        Ok(())
    }
}

/// Bytes of one merged send of datagrams of `len` bytes: as many whole ones as fit, at most 128.
pub fn gso_buffer(len: u32) -> u32 {
    let len = len.max(1);
    (UDP_LEN_MAX / len).min(128) * len
}

fn out_of_range(key: &str, number: i64, range: &std::ops::RangeInclusive<u32>, code: ErrorCode) -> Refusal {
    let reason = format!("parameter {key} is {number}, must be {} to {}", range.start(), range.end());
    Refusal { code, reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_said_is_one_tcp_stream_of_ten_seconds() {
        assert_eq!(Params::decode(b"{}").unwrap(), Params::default());
    }

    #[test]
    fn ranges_are_refused_with_their_codes() {
        for (json, code) in [
            (r#"{"time":86401}"#, 5),
            (r#"{"parallel":129}"#, 6),
            (r#"{"parallel":0}"#, 6),
            (r#"{"len":1048577}"#, 7),
            (r#"{"window":536870913}"#, 8),
            (r#"{"MSS":32768}"#, 10),
            (r#"{"omit":601}"#, 12),
            (r#"{"burst":1001}"#, 15),
            (r#"{"udp":true,"len":15}"#, 20),
            (r#"{"TOS":256}"#, 21),
            (r#"{"time":-1}"#, 5),
            ("nonsense", 114),
            ("[]", 114),
        ] {
            assert_eq!(Params::decode(json.as_bytes()).unwrap_err().code.0, code, "{json}");
        }
    }

    #[test]
    fn wrong_types_are_as_if_absent() {
        let params = Params::decode(br#"{"time":"x","parallel":[],"congestion":7,"udp":"yes"}"#).unwrap();
        assert_eq!(params, Params::default());
    }

    #[test]
    fn an_old_client_that_sends_bytes_and_no_time_has_no_time_limit() {
        assert_eq!(Params::decode(br#"{"tcp":true,"num":1000}"#).unwrap().time_s, 0);
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let params = Params {
            transport: Transport::Udp,
            len: 1200,
            num: 5_000_000_000,
            time_s: 0,
            parallel: 3,
            bidir: true,
            window: Some(1 << 20),
            bandwidth: Some(5_000_000_000),
            burst: 7,
            tos: 184,
            congestion: Some("cubic".into()),
            counters_64bit: true,
            offload: Offload { gso: true, gro: true },
            ..Params::default()
        };
        let back = Params::decode(params.encode().to_string().as_bytes()).unwrap();
        assert_eq!(back, params);
        assert_eq!(params.target_bytes(), Some(5_000_000_000));
        assert_eq!(params.streams(), 6);
        assert!(params.client_sends(2) && !params.client_sends(3));
        assert_eq!(gso_buffer(1200), 54 * 1200);
        assert_eq!(gso_buffer(16), 2048);
    }

    proptest! {
        #[test]
        fn any_bytes_are_parameters_or_a_refusal(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _either = Params::decode(&bytes);
        }

        #[test]
        fn any_numbers_stay_within_the_ranges(time in any::<i64>(), len in any::<i64>(), parallel in any::<f64>()) {
            let json = json!({"time": time, "len": len, "parallel": parallel});
            if let Ok(p) = Params::decode(json.to_string().as_bytes()) {
                prop_assert!(p.time_s <= TIME_MAX && (1..=TCP_LEN_MAX).contains(&p.len));
                prop_assert!((1..=PARALLEL_MAX).contains(&p.parallel));
            }
        }
    }
}
