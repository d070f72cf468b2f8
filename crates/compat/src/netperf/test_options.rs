//! netperf's options of the test, behind `--`.

use super::getopt;
use super::numbers::{self, NotANumber, explicit_pair, pair};
use super::options::{Form, Place, Refusal, TestName, Wrong, bad, place, set_words, unsigned};
use super::request::{Pattern, Transport};

/// Options behind `--`.
#[derive(Debug, Clone, PartialEq)]
pub struct TestOptions {
    /// Direction and kind of the test.
    pub pattern: Pattern,
    /// Protocol.
    pub transport: Transport,
    /// Extra requests outstanding.
    pub first_burst: Option<u32>,
    /// TCP_NODELAY at both ends.
    pub nodelay: bool,
    /// Seconds to wait for a UDP response.
    pub udp_timeout_seconds: Option<u32>,
    /// Data target.
    pub target: Place,
    /// Data source.
    pub source: Place,
    /// Congestion control, local and remote.
    pub congestion: [String; 2],
    /// Send sizes, local and remote.
    pub send_size: [i32; 2],
    /// Receive sizes, local and remote.
    pub receive_size: [i32; 2],
    /// Connect the UDP socket at the server.
    pub connect_server: bool,
    /// Form and specification of the omni output.
    pub output: Option<(Form, String)>,
    /// First and last port of TCP_CRR and TCP_CC.
    pub port_range: [u16; 2],
    /// Data ports, local and remote.
    pub ports: [u16; 2],
    /// Request and response bytes.
    pub exchange: [i32; 2],
    /// Whether routing is allowed, if said.
    pub routing: Option<bool>,
    /// Local socket buffers: send, receive.
    pub local_buffers: [i32; 2],
    /// Remote socket buffers: send, receive.
    pub remote_buffers: [i32; 2],
    /// UUID to print.
    pub uuid: Option<String>,
    /// Family of the data.
    pub family: Option<u8>,
}

const TEST_SPEC: &str = "aBb:cCd:De:fFgG:hH:Ij:k?K:l:L:m:M:nNo?O?p:P:q:r:R:s:S:t:T:u:UVW:46";

/// Test options that are known but not offered, and why.
const TEST_NOT_OFFERED: [(char, &str); 13] = [
    ('a', "no deferred accept"),
    ('B', "the server answers from the address that was asked"),
    ('C', "no TCP_CORK"),
    ('f', "path MTU discovery is the system's"),
    ('F', "no TCP Fast Open"),
    ('g', "no SO_DEBUG"),
    ('G', "the segment size is the system's"),
    ('I', "always send()"),
    ('l', "no multicast"),
    ('q', "no pacing by the socket"),
    ('U', "a failed connection ends the test"),
    ('V', "no copy avoidance"),
    ('W', "use the global -W"),
];

impl TestOptions {
    /// What a test is without options of its own.
    pub(crate) fn defaults(test: TestName) -> Self {
        let (pattern, transport) = match test {
            TestName::TcpMaerts => (Pattern::Maerts, Transport::Tcp),
            TestName::TcpRr => (Pattern::Rr, Transport::Tcp),
            TestName::TcpCrr => (Pattern::Crr, Transport::Tcp),
            TestName::TcpCc => (Pattern::Cc, Transport::Tcp),
            TestName::UdpStream => (Pattern::Stream, Transport::Udp),
            TestName::UdpRr => (Pattern::Rr, Transport::Udp),
            _ => (Pattern::Stream, Transport::Tcp),
        };
        Self {
            pattern,
            transport,
            first_burst: None,
            nodelay: false,
            udp_timeout_seconds: None,
            target: Place::default(),
            source: Place::default(),
            congestion: Default::default(),
            send_size: [-1, -1],
            receive_size: [-1, -1],
            connect_server: false,
            output: None,
            port_range: [5000, 65535],
            ports: [0, 0],
            exchange: [1, 1],
            routing: None,
            local_buffers: [-1, -1],
            remote_buffers: [-1, -1],
            uuid: None,
            family: None,
        }
    }

    pub(crate) fn parse(test: TestName, words: &[String]) -> Result<Self, Refusal> {
        let (found, extra) = getopt::parse(words, TEST_SPEC)
            .map_err(|e| bad(format!("netperf: {e}\n{}", super::help::TEST)))?;
        if let Some(word) = extra.first() {
            return Err(bad(format!("netperf: what is {word:?} for, among the options of the test?\n")));
        }
        let mut options = Self::defaults(test);
        let mut asked = Asked::default();
        for (letter, value) in found {
            let value = value.as_deref().unwrap_or_default();
            if let Some((_, why)) = TEST_NOT_OFFERED.iter().find(|(not, _)| *not == letter) {
                return Err(bad(format!("netperf: option -{letter} of the test is not offered: {why}\n")));
            }
            options.set(letter, value, &mut asked).map_err(|e| e.at(letter, value))?;
        }
        if test == TestName::Omni {
            options.pattern = asked.pattern();
        }
        Ok(options)
    }

    fn set(&mut self, letter: char, value: &str, asked: &mut Asked) -> Result<(), Wrong> {
        match letter {
            '4' => self.family = Some(4),
            '6' => self.family = Some(6),
            'b' => self.first_burst = Some(unsigned(value)?),
            'c' => asked.connect = true,
            'd' => asked.direct(value)?,
            'D' => self.nodelay = true,
            'e' => {
                let seconds = numbers::number(value)?;
                self.udp_timeout_seconds = u32::try_from(seconds).ok().filter(|&s| s > 0);
            }
            'h' => return Err(Wrong::Refused(Refusal::Complain(super::help::TEST.into(), 1))),
            'H' => self.target = place(value),
            'L' => self.source = place(value),
            'k' => self.output = Some((Form::Keyval, value.to_owned())),
            'o' => self.output = Some((Form::Csv, value.to_owned())),
            'O' => self.output = Some((Form::Human, value.to_owned())),
            'K' => {
                let (local, remote) = pair(value);
                for (text, name) in [local, remote].into_iter().zip(&mut self.congestion) {
                    *name = text.unwrap_or_default().to_owned();
                }
            }
            'm' => {
                set_words(explicit_pair(value), &mut self.send_size)?;
                asked.sends = true;
            }
            'M' => {
                let (remote, local) = explicit_pair(value);
                set_words((local, remote), &mut self.receive_size)?;
                asked.receives = true;
            }
            // The local UDP socket is always connected.
            'n' | 'j' => {}
            'N' => self.connect_server = true,
            'p' => set_words(pair(value), &mut self.port_range)?,
            'P' => set_words(pair(value), &mut self.ports)?,
            'r' => {
                set_words(pair(value), &mut self.exchange)?;
                asked.exchange = true;
            }
            'R' => self.routing = Some(numbers::number(value)? != 0),
            's' => set_words(pair(value), &mut self.local_buffers)?,
            'S' => set_words(pair(value), &mut self.remote_buffers)?,
            't' => match value.to_ascii_lowercase().as_str() {
                "stream" => self.transport = Transport::Tcp,
                "dgram" => self.transport = Transport::Udp,
                _ => return Err(not_offered('t', value)),
            },
            'T' => match value.to_ascii_lowercase().as_str() {
                "tcp" => self.transport = Transport::Tcp,
                "udp" => self.transport = Transport::Udp,
                _ => return Err(not_offered('T', value)),
            },
            'u' => self.uuid = Some(value.to_owned()),
            _ => {}
        }
        Ok(())
    }
}

fn not_offered(letter: char, value: &str) -> Wrong {
    Wrong::Refused(bad(format!("netperf: -{letter} {value} is not offered: tests are over TCP or UDP\n")))
}

/// What the options of an OMNI test say of its direction.
#[derive(Debug, Default)]
struct Asked {
    direction: u32,
    connect: bool,
    sends: bool,
    receives: bool,
    exchange: bool,
}

const SENDS: u32 = 2;
const RECEIVES: u32 = 4;

impl Asked {
    fn direct(&mut self, value: &str) -> Result<(), NotANumber> {
        for word in value.split('|') {
            self.direction |= match word.to_ascii_lowercase().as_str() {
                "xmit" | "send" | "stream" | "transmit" => SENDS,
                "recv" | "receive" | "maerts" => RECEIVES,
                "rr" => SENDS | RECEIVES,
                number => u32::try_from(numbers::number(number)?).map_err(|_| NotANumber(word.to_owned()))?,
            };
        }
        Ok(())
    }

    fn pattern(&self) -> Pattern {
        let mut bits = self.direction & (SENDS | RECEIVES);
        if self.exchange {
            bits |= SENDS | RECEIVES;
        }
        if bits == 0 {
            bits = if self.sends { SENDS } else { 0 } | if self.receives { RECEIVES } else { 0 };
        }
        match (bits, self.connect) {
            (0, true) => Pattern::Cc,
            (_, true) => Pattern::Crr,
            (0 | SENDS, false) => Pattern::Stream,
            (RECEIVES, false) => Pattern::Maerts,
            _ => Pattern::Rr,
        }
    }
}
