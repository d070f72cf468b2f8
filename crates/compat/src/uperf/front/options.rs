//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use crate::uperf::DEFAULT_PORT;
use crate::uperf::profile::{integer, nanoseconds};
use crate::uperf::wire::Layout;

/// Least interval.
const LEAST_INTERVAL_NS: u64 = 1_000_000;

/// What this end is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// `-m FILE`.
    Master(PathBuf),
    /// `-s`.
    Slave,
}

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What this end is.
    pub role: Role,
    /// `-P`: control port.
    pub port: u16,
    /// `-i`: between progress lines.
    pub interval: Duration,
    /// `-f`: table of flowops.
    pub flowops: bool,
    /// `-t`: table of transactions.
    pub transactions: bool,
    /// `-g`: a line a group.
    pub groups: bool,
    /// `-T`: a line a strand.
    pub strands: bool,
    /// Without `-n`: any figures at all.
    pub statistics: bool,
    /// `-R`: raw lines.
    pub raw: bool,
    /// `-X`: file for each flowop record.
    pub history: Option<PathBuf>,
    /// `-v`.
    pub verbose: bool,
    /// `--linerate-json FILE`.
    pub json: Option<PathBuf>,
    /// `--linerate-layout LETTER`.
    pub layout: Option<Layout>,
}

/// Why a command line is not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// No argument at all.
    #[error("no arguments")]
    Nothing,
    /// `-h`.
    #[error("help")]
    Help,
    /// `-V`.
    #[error("version")]
    Version,
    /// No such option.
    #[error("invalid option -- '{0}'")]
    Unknown(String),
    /// An option lacks its value.
    #[error("option requires an argument -- '{0}'")]
    NoValue(String),
    /// A value can't be.
    #[error("{0}")]
    Bad(String),
}

impl Options {
    /// Reads the arguments that follow the program's name.
    ///
    /// # Errors
    /// See [`OptionsError`].
    pub fn parse(arguments: &[String]) -> Result<Self, OptionsError> {
        if arguments.is_empty() {
            return Err(OptionsError::Nothing);
        }
        let mut reading = Reading::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            if let Some(long) = word.strip_prefix("--").filter(|l| !l.is_empty()) {
                let mut value = || words.next().ok_or_else(|| OptionsError::NoValue(long.to_owned()));
                match long {
                    "linerate-json" => reading.options.json = Some(value()?.into()),
                    "linerate-layout" => {
                        let value = value()?;
                        let layout = Layout::from_letter(value).ok_or_else(|| {
                            OptionsError::Bad(format!("--linerate-layout {value}: must be A to F"))
                        })?;
                        reading.options.layout = Some(layout);
                    }
                    _ => return Err(OptionsError::Unknown(word.clone())),
                }
                continue;
            }
            let letters = word.strip_prefix('-').filter(|l| !l.is_empty());
            let letters = letters.ok_or_else(|| OptionsError::Bad(format!("unexpected argument {word}")))?;
            reading.letters(letters, &mut words)?;
        }
        reading.settle()
    }
}

/// Options while they are read.
#[derive(Debug)]
struct Reading {
    options: Options,
    master: Option<PathBuf>,
    slave: bool,
}

impl Default for Reading {
    fn default() -> Self {
        let options = Options {
            role: Role::Slave,
            port: DEFAULT_PORT,
            interval: Duration::from_secs(1),
            flowops: false,
            transactions: false,
            groups: false,
            strands: false,
            statistics: true,
            raw: false,
            history: None,
            verbose: false,
            json: None,
            layout: None,
        };
        Self { options, master: None, slave: false }
    }
}

impl Reading {
    fn letters<'a>(
        &mut self,
        letters: &str,
        words: &mut impl Iterator<Item = &'a String>,
    ) -> Result<(), OptionsError> {
        let options = &mut self.options;
        for (at, letter) in letters.char_indices() {
            match letter {
                's' => self.slave = true,
                'f' | 'p' => options.flowops = true,
                't' => options.transactions = true,
                'g' => options.groups = true,
                'T' => options.strands = true,
                'a' => {
                    options.flowops = true;
                    options.transactions = true;
                    options.groups = true;
                    options.strands = true;
                }
                // Packet figures are on anyway, CPU counters only in builds with them: uperf takes both in silence.
                'k' | 'e' => {}
                'n' => options.statistics = false,
                'R' => options.raw = true,
                'v' => options.verbose = true,
                'h' => return Err(OptionsError::Help),
                'V' => return Err(OptionsError::Version),
                'm' | 'X' | 'i' | 'P' | 'S' | 'E' => {
                    let rest = &letters[at + 1..];
                    let value = if rest.is_empty() { words.next().map(String::as_str) } else { Some(rest) };
                    let value = value.ok_or_else(|| OptionsError::NoValue(letter.to_string()))?;
                    return self.value(letter, value);
                }
                other => return Err(OptionsError::Unknown(other.to_string())),
            }
        }
        Ok(())
    }

    fn value(&mut self, letter: char, value: &str) -> Result<(), OptionsError> {
        let bad = |message: String| OptionsError::Bad(format!("-{letter} {message}"));
        match letter {
            'm' => self.master = Some(value.into()),
            'X' => self.options.history = Some(value.into()),
            'i' => {
                let ns = nanoseconds(value).map_err(bad)?;
                if ns < LEAST_INTERVAL_NS {
                    return Err(OptionsError::Bad("Incorrect interval".into()));
                }
                self.options.interval = Duration::from_nanos(ns);
            }
            'P' => {
                let port = integer(value).map_err(bad)?;
                let port = u16::try_from(port).ok().filter(|p| *p > 0);
                self.options.port = port.ok_or_else(|| bad(format!("{value}: must be 1 to 65535")))?;
            }
            'S' if !value.eq_ignore_ascii_case("tcp") => {
                return Err(bad(format!("{value}: not offered, control is over tcp")));
            }
            // -S tcp, and -E, which only builds with CPU counters use.
            _ => {}
        }
        Ok(())
    }

    fn settle(mut self) -> Result<Options, OptionsError> {
        self.options.role = match (self.master, self.slave) {
            (Some(file), false) => Role::Master(file),
            (None, true) => Role::Slave,
            _ => return Err(OptionsError::Bad("one of -m and -s is needed".into())),
        };
        Ok(self.options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, OptionsError> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read() {
        let options = parse("-m x.xml -i 100ms -P 4k -aR -X h.txt").unwrap();
        assert_eq!(options.role, Role::Master("x.xml".into()));
        assert_eq!((options.interval, options.port), (Duration::from_millis(100), 4096));
        assert!(options.flowops && options.transactions && options.groups && options.strands && options.raw);
        assert_eq!(parse("-s").unwrap().role, Role::Slave);
        assert!(!parse("-nmx").unwrap().statistics);
        assert_eq!(parse("-s --linerate-layout c").unwrap().layout, Some(Layout::C));
    }

    #[test]
    fn bad_lines_are_refused() {
        assert_eq!(parse(""), Err(OptionsError::Nothing));
        assert_eq!(parse("-x"), Err(OptionsError::Unknown("x".into())));
        assert_eq!(parse("-m"), Err(OptionsError::NoValue("m".into())));
        assert_eq!(parse("-s -i 10us"), Err(OptionsError::Bad("Incorrect interval".into())));
        for line in ["-s -m x", "-i 1s", "-s -P 0", "-s -S udp", "-s --linerate-layout z", "-s extra"] {
            assert!(matches!(parse(line), Err(OptionsError::Bad(_))), "{line}");
        }
    }
}
