//! The command line: SGI ttcp 1.12's options, and those of its forks that do not clash.

use std::iter::Peekable;
use std::path::PathBuf;

use crate::ttcp::DEFAULT_PORT;

const LONGEST_BUFFER: u64 = 1 << 30;

/// Options whose letter is known, and why they are not offered.
const NOT_OFFERED: [(char, &str); 2] =
    [('d', "SO_DEBUG does nothing for TCP on Linux"), ('P', "the histogram of the Ohio version")];

/// What `-f` chooses: the unit of the rate. All are based on 1024, as SGI's are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unit {
    /// 1024 bytes.
    #[default]
    KB,
    /// 1024^2 bytes.
    MB,
    /// 1024^3 bytes.
    GB,
    /// 1024 bits.
    Kbit,
    /// 1024^2 bits.
    Mbit,
    /// 1024^3 bits.
    Gbit,
}

impl Unit {
    /// An unknown letter is K, as in ttcp.
    fn from_letter(letter: Option<char>) -> Self {
        match letter {
            Some('M') => Self::MB,
            Some('G') => Self::GB,
            Some('k') => Self::Kbit,
            Some('m') => Self::Mbit,
            Some('g') => Self::Gbit,
            _ => Self::KB,
        }
    }

    /// `bytes_per_second` in this unit with its name, `93.10 MB`.
    pub(crate) fn rate(self, bytes_per_second: f64) -> String {
        let (factor, name) = match self {
            Self::KB => (1.0 / 1024.0, "KB"),
            Self::MB => (1.0 / 1_048_576.0, "MB"),
            Self::GB => (1.0 / 1_073_741_824.0, "GB"),
            Self::Kbit => (8.0 / 1024.0, "Kbit"),
            Self::Mbit => (8.0 / 1_048_576.0, "Mbit"),
            Self::Gbit => (8.0 / 1_073_741_824.0, "Gbit"),
        };
        format!("{:.2} {name}", bytes_per_second * factor)
    }
}

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// `-t`: sends; else receives.
    pub transmit: bool,
    /// `-s`: sends the pattern, or discards what comes; else standard input and output.
    pub pattern: bool,
    /// `-u`.
    pub udp: bool,
    /// `-v`.
    pub verbose: bool,
    /// `-B`: fill the buffer before writing it out.
    pub whole_blocks: bool,
    /// `-T`: look at every byte received.
    pub touch: bool,
    /// `-D`: TCP_NODELAY.
    pub nodelay: bool,
    /// `-f`.
    pub unit: Unit,
    /// `-l`: bytes a call.
    pub length: usize,
    /// `-n`: buffers to send; negative is without end.
    pub count: i64,
    /// `-p`.
    pub port: u16,
    /// `-b`: socket buffer, bytes; 0 leaves it.
    pub socket_buffer: u32,
    /// `-A`: alignment of the buffer, bytes.
    pub align: usize,
    /// `-O`: offset from it.
    pub offset: usize,
    /// `-4` or `-6`.
    pub family: Option<u8>,
    /// `-I`: link to use.
    pub link: Option<String>,
    /// `-w`: pause after each send, microseconds.
    pub pause_us: u64,
    /// `-R`, or `-C` with `-r`, or `-S` with `-t`: the receiver connects and the transmitter listens.
    pub swapped: bool,
    /// The other end, or with `-r` a multicast group.
    pub host: Option<String>,
    /// `--linerate-json FILE`.
    pub json: Option<PathBuf>,
    /// Things to tell that ttcp takes in a way that few expect.
    pub notes: Vec<String>,
}

/// Why a command line is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// No argument at all.
    #[error("no arguments")]
    Nothing,
    /// No such option.
    #[error("invalid option -- '{0}'")]
    Unknown(String),
    /// An option lacks its value.
    #[error("option requires an argument -- '{0}'")]
    NoValue(String),
    /// ttcp, or one of its forks, has it; this program doesn't.
    #[error("option not offered -- '{0}': {1}")]
    NotOffered(char, &'static str),
    /// A value is out of range.
    #[error("-{0} {1}: must be {2}")]
    Range(char, String, &'static str),
    /// The connecting side needs a host.
    #[error("no host to connect to")]
    NoHost,
    /// More than one host.
    #[error("unexpected argument -- '{0}'")]
    Extra(String),
    /// Options that exclude each other.
    #[error("{0}")]
    Conflict(&'static str),
}

impl Default for Options {
    fn default() -> Self {
        Self {
            transmit: false,
            pattern: false,
            udp: false,
            verbose: false,
            whole_blocks: false,
            touch: false,
            nodelay: false,
            unit: Unit::KB,
            length: 8192,
            count: 2048,
            port: DEFAULT_PORT,
            socket_buffer: 0,
            align: 16384,
            offset: 0,
            family: None,
            link: None,
            pause_us: 0,
            swapped: false,
            host: None,
            json: None,
            notes: Vec::new(),
        }
    }
}

impl Options {
    /// Reads the arguments that follow the program's name, in getopt's way: bundled letters, values attached or separate.
    ///
    /// # Errors
    /// See [`OptionsError`].
    pub fn parse(arguments: &[String]) -> Result<Self, OptionsError> {
        if arguments.is_empty() {
            return Err(OptionsError::Nothing);
        }
        let mut options = Self::default();
        let (mut listens, mut connects) = (false, false);
        let mut words = arguments.iter().peekable();
        while let Some(word) = words.next() {
            if word == "--linerate-json" {
                let file = words.next().ok_or_else(|| OptionsError::NoValue("linerate-json".into()))?;
                options.json = Some(file.into());
                continue;
            }
            if word.starts_with("--") && word.len() > 2 {
                return Err(OptionsError::Unknown(word.clone()));
            }
            match word.strip_prefix('-') {
                Some(letters) if !letters.is_empty() => {
                    options.letters(letters, &mut words, &mut listens, &mut connects)?;
                }
                _ if options.host.is_some() => return Err(OptionsError::Extra(word.clone())),
                _ => options.host = Some(word.clone()),
            }
        }
        options.settle(listens, connects)
    }

    /// Whether this end connects.
    pub fn connects(&self) -> bool {
        self.transmit != self.swapped
    }

    /// Whether payload goes to standard output, so that the report can't.
    pub fn writes_payload(&self) -> bool {
        !self.transmit && !self.pattern
    }

    fn letters<'a>(
        &mut self,
        letters: &'a str,
        words: &mut Peekable<impl Iterator<Item = &'a String>>,
        listens: &mut bool,
        connects: &mut bool,
    ) -> Result<(), OptionsError> {
        for (at, letter) in letters.char_indices() {
            match letter {
                't' => self.transmit = true,
                'r' => self.transmit = false,
                's' => self.pattern = !self.pattern,
                'u' => self.udp = true,
                'v' => self.verbose = true,
                'B' => self.whole_blocks = true,
                'T' => self.touch = true,
                'D' => self.nodelay = true,
                '4' => self.family = Some(4),
                '6' => self.family = Some(6),
                'R' => self.swapped = true,
                'S' => *listens = true,
                'C' => *connects = true,
                'f' | 'l' | 'n' | 'p' | 'b' | 'A' | 'O' | 'I' | 'w' => {
                    let rest = &letters[at + letter.len_utf8()..];
                    let separate =
                        if rest.is_empty() { words.next().map(String::as_str) } else { Some(rest) };
                    let value = separate.ok_or_else(|| OptionsError::NoValue(letter.to_string()))?;
                    return self.value(letter, value);
                }
                other => {
                    let known = NOT_OFFERED.iter().find(|(known, _)| *known == other);
                    return Err(known.map_or_else(
                        || OptionsError::Unknown(other.to_string()),
                        |(_, why)| OptionsError::NotOffered(other, why),
                    ));
                }
            }
        }
        Ok(())
    }

    fn value(&mut self, letter: char, value: &str) -> Result<(), OptionsError> {
        match letter {
            'f' => {
                self.unit = Unit::from_letter(value.chars().next());
                return Ok(());
            }
            'I' => {
                self.link = Some(value.to_owned());
                return Ok(());
            }
            _ => {}
        }
        let number = self.number(letter, value);
        let range = |what| OptionsError::Range(letter, value.to_owned(), what);
        let within = |least: i64, most: u64, what| {
            u64::try_from(number).ok().filter(|n| number >= least && *n <= most).ok_or_else(|| range(what))
        };
        match letter {
            'n' => self.count = number,
            'p' => self.port = within(1, u64::from(u16::MAX), "1 to 65535")? as u16,
            'l' => self.length = within(1, LONGEST_BUFFER, "1 byte to 1 GiB")? as usize,
            'b' => self.socket_buffer = within(0, i32::MAX as u64, "0 to 2147483647")? as u32,
            'A' => self.align = within(0, LONGEST_BUFFER, "0 to 1 GiB")? as usize,
            'O' => self.offset = within(0, LONGEST_BUFFER, "0 to 1 GiB")? as usize,
            _ => self.pause_us = within(0, u64::from(u32::MAX), "0 to 4294967295")?,
        }
        Ok(())
    }

    /// As atoi reads it: what follows the digits is ignored, no digit is 0. Says so, since few expect it.
    fn number(&mut self, letter: char, value: &str) -> i64 {
        let text = value.trim_start();
        let (sign, digits) = match text.strip_prefix(['-', '+']) {
            Some(digits) => (if text.starts_with('-') { -1 } else { 1 }, digits),
            None => (1, text),
        };
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let number = digits[..end].parse::<i64>().unwrap_or(if end == 0 { 0 } else { i64::MAX }) * sign;
        if end == 0 || end < digits.len() {
            self.notes.push(format!("-{letter} {value}: taken as {number}, as ttcp does"));
        }
        number
    }

    fn settle(mut self, listens: bool, connects: bool) -> Result<Self, OptionsError> {
        if listens && !self.transmit {
            return Err(OptionsError::Conflict("-S is for -t: a receiver listens anyway"));
        }
        if connects && self.transmit {
            return Err(OptionsError::Conflict("-C is for -r: a transmitter connects anyway"));
        }
        self.swapped |= listens || connects;
        if self.swapped && self.udp {
            return Err(OptionsError::Conflict("-C, -S and -R are for TCP"));
        }
        if self.connects() && self.host.is_none() {
            return Err(OptionsError::NoHost);
        }
        if self.udp && self.length <= super::marker::MARKER_BYTES {
            self.length = super::marker::MARKER_BYTES + 1;
        }
        if self.udp && self.length > 65_507 {
            let length = self.length.to_string();
            return Err(OptionsError::Range('l', length, "65507 or less with -u"));
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, OptionsError> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn values_may_be_attached_or_separate_and_letters_bundled() {
        let options = parse("-tsu -n100 -l 1000 -p5010 host").unwrap();
        assert!(options.transmit && options.pattern && options.udp);
        assert_eq!((options.count, options.length, options.port), (100, 1000, 5010));
        assert_eq!(options.host.as_deref(), Some("host"));
        assert_eq!(parse("-tsn5 host").unwrap().count, 5);
    }

    #[test]
    fn the_defaults_are_those_of_1_12() {
        let options = parse("-t host").unwrap();
        assert_eq!((options.length, options.count, options.port, options.align), (8192, 2048, 5001, 16384));
        assert!(!parse("-r").unwrap().transmit);
        assert!(!parse("-v").unwrap().transmit, "neither is a receiver");
    }

    #[test]
    fn s_toggles() {
        assert!(!parse("-r -s -s").unwrap().pattern);
    }

    #[test]
    fn numbers_are_read_as_atoi_does_and_it_says_so() {
        let options = parse("-t -s -l 64k -n -1 host").unwrap();
        assert_eq!((options.length, options.count), (64, -1));
        assert_eq!(options.notes, ["-l 64k: taken as 64, as ttcp does"]);
        assert!(matches!(parse("-t -l junk host"), Err(OptionsError::Range('l', ..))));
        assert!(matches!(parse("-t -p 70000 host"), Err(OptionsError::Range('p', ..))));
    }

    #[test]
    fn a_udp_buffer_is_never_a_marker() {
        assert_eq!(parse("-t -u -l 3 host").unwrap().length, 5);
        assert!(parse("-t -u -l 70000 host").is_err());
    }

    #[test]
    fn either_end_may_connect() {
        assert!(parse("-t host").unwrap().connects());
        assert!(!parse("-t -S").unwrap().connects());
        assert!(parse("-r -C host").unwrap().connects());
        assert!(parse("-r -R host").unwrap().connects());
        assert_eq!(parse("-r -C"), Err(OptionsError::NoHost));
        assert!(parse("-r -S").is_err());
    }

    #[test]
    fn bad_lines_are_refused() {
        assert_eq!(parse(""), Err(OptionsError::Nothing));
        assert_eq!(parse("-t"), Err(OptionsError::NoHost));
        assert_eq!(parse("-t -z host"), Err(OptionsError::Unknown("z".into())));
        assert_eq!(parse("-t -l"), Err(OptionsError::NoValue("l".into())));
        assert_eq!(parse("-t a b"), Err(OptionsError::Extra("b".into())));
        assert!(matches!(parse("-t -d host"), Err(OptionsError::NotOffered('d', _))));
        assert_eq!(parse("-t --fast host"), Err(OptionsError::Unknown("--fast".into())));
    }

    #[test]
    fn rates_have_base_1024() {
        let options = parse("-t -fm host").unwrap();
        assert_eq!(options.unit.rate(131_072.0), "1.00 Mbit");
        assert_eq!(Unit::KB.rate(1024.0), "1.00 KB");
        assert_eq!(Unit::from_letter(Some('x')), Unit::KB);
    }
}
