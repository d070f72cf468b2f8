//! netperf's command line: global options, then `--`, then the test's.

use super::getopt;
use super::numbers::{self, NotANumber, Unit, explicit_pair, pair};
use super::request::{Length, Pattern};
use super::test_options::TestOptions;

/// What `netperf -t` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestName {
    /// TCP_STREAM.
    TcpStream,
    /// TCP_MAERTS.
    TcpMaerts,
    /// TCP_SENDFILE.
    TcpSendfile,
    /// TCP_MSS.
    TcpMss,
    /// TCP_RR.
    TcpRr,
    /// TCP_CRR.
    TcpCrr,
    /// TCP_CC.
    TcpCc,
    /// UDP_STREAM.
    UdpStream,
    /// UDP_RR.
    UdpRr,
    /// OMNI.
    Omni,
    /// LOC_CPU.
    LocCpu,
    /// REM_CPU.
    RemCpu,
    /// UUID.
    Uuid,
}

impl TestName {
    fn of(name: &str) -> Option<Self> {
        Some(match name.to_ascii_uppercase().as_str() {
            "TCP_STREAM" => Self::TcpStream,
            "TCP_MAERTS" => Self::TcpMaerts,
            "TCP_SENDFILE" => Self::TcpSendfile,
            "TCP_MSS" => Self::TcpMss,
            "TCP_RR" => Self::TcpRr,
            "TCP_CRR" => Self::TcpCrr,
            "TCP_CC" => Self::TcpCc,
            "UDP_STREAM" => Self::UdpStream,
            "UDP_RR" => Self::UdpRr,
            "OMNI" => Self::Omni,
            "LOC_CPU" => Self::LocCpu,
            "REM_CPU" => Self::RemCpu,
            "UUID" => Self::Uuid,
            _ => return None,
        })
    }
}

/// Why netperf does not begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Print this on stdout and exit with 0.
    Print(String),
    /// Print this on stderr and exit with this code.
    Complain(String, u8),
}

/// Form of the omni output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `-o`.
    Csv,
    /// `-O`.
    Human,
    /// `-k`.
    Keyval,
}

/// Target or source of a connection, as given: host and family.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// Name or address.
    pub host: Option<String>,
    /// 4 or 6.
    pub family: Option<u8>,
}

/// The whole command line.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// All words, for the omni output.
    pub command_line: String,
    /// Test.
    pub test: TestName,
    /// Its name as given.
    pub test_word: String,
    /// Where netserver is.
    pub server: Place,
    /// Control connection's own address, also the data's.
    pub source: Place,
    /// Family said with -4 or -6.
    pub family: Option<u8>,
    /// Control port, and its local port.
    pub ports: [u16; 2],
    /// Passphrase.
    pub passphrase: Option<String>,
    /// Text behind a result line.
    pub brand: String,
    /// Measure local, remote CPU.
    pub measure_cpu: [bool; 2],
    /// Seconds between interim results.
    pub interim_seconds: Option<f64>,
    /// Unit, if said.
    pub unit: Option<Unit>,
    /// Most and least iterations.
    pub iterations: [u32; 2],
    /// Confidence level: 95 or 99, where iterations are asked for.
    pub confidence_level: Option<u8>,
    /// Width of the interval, as a fraction of the mean.
    pub confidence_width: f64,
    /// Whether only the result must meet it.
    pub confidence_result_only: bool,
    /// Keep latency statistics.
    pub keep_latency: bool,
    /// When a test ends.
    pub length: Length,
    /// Whether headers are printed.
    pub headers: bool,
    /// 0, 1, 2 ...
    pub verbosity: u32,
    /// Seconds between setup and data.
    pub settle_seconds: u32,
    /// Keep the data connection alive.
    pub keepalive: bool,
    /// CPUs to bind to, local and remote; -1 is none.
    pub bind_cpu: [i32; 2],
    /// Messages of a burst, local and remote; 0 is unpaced.
    pub burst: [u32; 2],
    /// Microseconds between bursts.
    pub interval_micros: [u32; 2],
    /// SO_PRIORITY local, remote.
    pub priority: [i32; 2],
    /// TOS local, remote.
    pub tos: [i32; 2],
    /// Ring of send and receive buffers; 0 is netperf's choice.
    pub width: [i32; 2],
    /// The test's own.
    pub own: TestOptions,
    /// File that buffers are filled from.
    pub fill_file: Option<String>,
    /// File for the project's own record.
    pub record_file: Option<String>,
}

const GLOBAL_SPEC: &str = "a:A:B:b:c;C;dD:f:F:hH:i:I:jk:K:l:L:n:No:O:p:P:rs:St:T:v:Vw:W:y:Y:Z:46";

/// Global options that are known but not offered, and why.
const GLOBAL_NOT_OFFERED: [(char, &str); 7] = [
    ('a', "buffers begin on a page"),
    ('A', "buffers begin on a page"),
    ('k', "buffers are never dirtied"),
    ('K', "buffers are never dirtied"),
    ('N', "the discard, chargen and echo services that it needs are nowhere to be met"),
    ('o', "buffers have no offset"),
    ('O', "buffers have no offset"),
];

impl Options {
    /// Reads the words after the program's name.
    ///
    /// # Errors
    /// Help, version, or what is wrong.
    pub fn parse(words: &[String]) -> Result<Self, Refusal> {
        let (words, record_file) = take_record_file(words)?;
        let (global, own_words) = split(&words);
        let (found, extra) = getopt::parse(global, GLOBAL_SPEC)
            .map_err(|e| bad(format!("netperf: {e}\n{}", super::help::GLOBAL)))?;
        if let Some(word) = extra.first() {
            return Err(bad(format!("netperf: what is {word:?} for? Options of the test go behind --\n")));
        }
        let mut options = Self::defaults(&words, record_file);
        for (letter, value) in found {
            let value = value.as_deref().unwrap_or_default();
            if let Some((_, why)) = GLOBAL_NOT_OFFERED.iter().find(|(not, _)| *not == letter) {
                return Err(bad(format!("netperf: option -{letter} is not offered: {why}\n")));
            }
            options.set(letter, value).map_err(|e| e.at(letter, value))?;
        }
        options.own = TestOptions::parse(options.test, own_words)?;
        options.finish();
        Ok(options)
    }

    fn defaults(words: &[String], record_file: Option<String>) -> Self {
        Self {
            command_line: std::iter::once("netperf")
                .chain(words.iter().map(String::as_str))
                .collect::<Vec<_>>()
                .join(" "),
            test: TestName::TcpStream,
            test_word: "TCP_STREAM".into(),
            server: Place::default(),
            source: Place::default(),
            family: None,
            ports: [super::netserver::DEFAULT_PORT, 0],
            passphrase: None,
            brand: String::new(),
            measure_cpu: [false, false],
            interim_seconds: None,
            unit: None,
            iterations: [1, 1],
            confidence_level: None,
            confidence_width: 0.05,
            confidence_result_only: false,
            keep_latency: false,
            length: Length::Seconds(10),
            headers: true,
            verbosity: 1,
            settle_seconds: 0,
            keepalive: false,
            bind_cpu: [-1, -1],
            burst: [0, 0],
            interval_micros: [0, 0],
            priority: [-1, -1],
            tos: [-1, -1],
            width: [0, 0],
            own: TestOptions::defaults(TestName::TcpStream),
            fill_file: None,
            record_file,
        }
    }

    fn set(&mut self, letter: char, value: &str) -> Result<(), Wrong> {
        match letter {
            '4' => self.family = Some(4),
            '6' => self.family = Some(6),
            'B' => self.brand = value.to_owned(),
            'b' => set_words(explicit_pair(value), &mut self.burst)?,
            'c' => self.measure_cpu[0] = true,
            'C' => self.measure_cpu[1] = true,
            'D' => {
                let seconds = explicit_pair(value).0.unwrap_or("1");
                let seconds: f64 = seconds.parse().map_err(|_| NotANumber(seconds.to_owned()))?;
                self.interim_seconds = Some(seconds.abs()).filter(|s| s.is_finite() && *s > 0.0);
                self.interim_seconds.ok_or_else(|| NotANumber(value.to_owned()))?;
            }
            'F' => match explicit_pair(value) {
                (local, None) => self.fill_file = local.map(str::to_owned),
                (_, Some(_)) => {
                    let why = "netperf: -F for the server is not offered: no file is opened for a client\n";
                    return Err(Wrong::Refused(bad(why.into())));
                }
            },
            'f' => self.unit = value.chars().next().map(Unit),
            'h' => return Err(Wrong::Refused(Refusal::Complain(super::help::GLOBAL.into(), 1))),
            'V' => return Err(Wrong::Refused(Refusal::Print(format!("{}\n", super::VERSION_LINE)))),
            'H' => self.server = place(value),
            'L' => self.source = place(value),
            'i' => {
                set_words(pair(value), &mut self.iterations)?;
                self.confidence_level.get_or_insert(99);
            }
            'I' => {
                // A level alone leaves the width at 5 %.
                let (level, width) = explicit_pair(value);
                if let Some(level) = level {
                    let known = matches!(level, "95" | "99").then(|| if level == "95" { 95 } else { 99 });
                    let wrong =
                        || Refusal::Complain("Only 95% and 99% confidence level is supported\n".into(), 255);
                    self.confidence_level = Some(known.ok_or_else(wrong).map_err(Wrong::Refused)?);
                }
                if let Some(width) = width {
                    let percent: f64 = width.parse().map_err(|_| NotANumber(width.to_owned()))?;
                    self.confidence_width = percent / 100.0;
                }
                if self.iterations == [1, 1] {
                    self.iterations = [10, 3];
                }
            }
            'j' => self.keep_latency = true,
            'l' => {
                self.length = match numbers::number(value)? {
                    0 => Length::Unlimited,
                    seconds @ 1.. => {
                        Length::Seconds(u32::try_from(seconds).map_err(|_| NotANumber(value.into()))?)
                    }
                    count => Length::Count(count.unsigned_abs()),
                }
            }
            'n' | 'd' => {}
            'p' => set_words(explicit_pair(value), &mut self.ports)?,
            'P' => self.headers = numbers::number(value)? != 0,
            'r' => self.confidence_result_only = true,
            's' => self.settle_seconds = unsigned(value)?,
            'S' => self.keepalive = true,
            't' => {
                self.test = TestName::of(value).ok_or_else(|| Wrong::Refused(unknown_test(value)))?;
                self.test_word = value.to_owned();
            }
            'T' => set_words(pair(value), &mut self.bind_cpu)?,
            'v' => self.verbosity = unsigned(value)?,
            'w' => {
                let (local, remote) = explicit_pair(value);
                for (text, micros) in [local, remote].into_iter().zip(&mut self.interval_micros) {
                    *micros = text.map_or(Ok(*micros), numbers::micros)?;
                }
            }
            'W' => set_words(pair(value), &mut self.width)?,
            'y' => set_words(pair(value), &mut self.priority)?,
            'Y' => {
                let (local, remote) = pair(value);
                for (text, tos) in [local, remote].into_iter().zip(&mut self.tos) {
                    if let Some(text) = text {
                        *tos = numbers::tos(text).ok_or_else(|| NotANumber(text.to_owned()))?;
                    }
                }
            }
            'Z' => self.passphrase = Some(value.to_owned()),
            _ => {}
        }
        Ok(())
    }

    /// What follows from several options together.
    fn finish(&mut self) {
        self.iterations[1] = self.iterations[1].max(1);
        if self.confidence_level.is_some() {
            self.iterations = self.iterations.map(|n| n.clamp(3, 30));
        }
        self.iterations[0] = self.iterations[0].max(self.iterations[1]);
        // UDP_STREAM and TCP_CRR print no brand, as netperf does not; x is for transactions.
        if self.unit == Some(Unit('x')) && !self.counts_transactions() {
            self.unit = Some(Unit('m'));
        }
    }

    /// Whether the test's units are transactions.
    pub fn counts_transactions(&self) -> bool {
        matches!(self.own.pattern, Pattern::Rr | Pattern::Crr | Pattern::Cc)
    }

    /// Unit of the result.
    pub fn result_unit(&self) -> Unit {
        self.unit.unwrap_or_else(|| Unit(if self.counts_transactions() { 'x' } else { 'm' }))
    }

    /// Unit of bytes, also where the result counts transactions.
    pub fn byte_unit(&self) -> Unit {
        self.unit.filter(|unit| unit.0 != 'x').unwrap_or(Unit('m'))
    }

    /// Outstanding requests.
    pub fn in_flight(&self) -> usize {
        self.own.first_burst.unwrap_or(0) as usize + 1
    }
}

pub(crate) enum Wrong {
    Number(NotANumber),
    Refused(Refusal),
}

impl Wrong {
    pub(crate) fn at(self, letter: char, value: &str) -> Refusal {
        match self {
            Self::Number(e) => bad(format!("netperf: -{letter} {value}: {e}\n")),
            Self::Refused(refusal) => refusal,
        }
    }
}

impl From<NotANumber> for Wrong {
    fn from(error: NotANumber) -> Self {
        Self::Number(error)
    }
}

pub(crate) fn bad(text: String) -> Refusal {
    Refusal::Complain(text, 1)
}

fn unknown_test(name: &str) -> Refusal {
    bad(format!(
        "The test you requested ({name}) is unknown to this netperf.\n\
         Please verify that you have the correct test name, \n\
         and that test family has been compiled into this netperf.\n"
    ))
}

fn split(words: &[String]) -> (&[String], &[String]) {
    match words.iter().position(|word| word == "--") {
        Some(at) => (&words[..at], &words[at + 1..]),
        None => (words, &[]),
    }
}

/// `--linerate-json FILE`, which is no option of netperf.
fn take_record_file(words: &[String]) -> Result<(Vec<String>, Option<String>), Refusal> {
    let mut words = words.to_vec();
    let Some(at) = words.iter().position(|word| word == "--linerate-json") else { return Ok((words, None)) };
    words.remove(at);
    if at >= words.len() {
        return Err(bad("netperf: --linerate-json needs a file\n".into()));
    }
    let file = words.remove(at);
    Ok((words, Some(file)))
}

pub(crate) fn set_words<T: TryFrom<i64> + Copy>(
    (first, second): (Option<&str>, Option<&str>),
    into: &mut [T; 2],
) -> Result<(), NotANumber> {
    for (text, value) in [first, second].into_iter().zip(into) {
        if let Some(text) = text {
            *value = T::try_from(numbers::number(text)?).map_err(|_| NotANumber(text.to_owned()))?;
        }
    }
    Ok(())
}

pub(crate) fn unsigned(text: &str) -> Result<u32, NotANumber> {
    u32::try_from(numbers::number(text)?).map_err(|_| NotANumber(text.to_owned()))
}

pub(crate) fn place(value: &str) -> Place {
    let (host, family) = value.split_once(',').unwrap_or((value, ""));
    Place { host: (!host.is_empty()).then(|| host.to_owned()), family: family_of(family) }
}

/// 4 or 6, from a word that names a family.
pub(crate) fn family_of(word: &str) -> Option<u8> {
    let lower = word.to_ascii_lowercase();
    if lower.contains('6') {
        Some(6)
    } else if lower.contains("inet") || lower.contains('4') {
        Some(4)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
