//! The `options` of a flowop.

use crate::uperf::profile::number::{integer, nanoseconds, plain};
use crate::uperf::workorder::{Flowop, Kind, Protocol, flag};

/// Looks up an environment variable.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Room for a folder's name on the wire, with its NUL.
const LONGEST_FOLDER: usize = 127;
const LONGEST_HOST: usize = 255;
const LONGEST_WORD: usize = 31;
const LONGEST_POLICY: usize = 7;

/// SCTP's options of 32 bits, in the order of the wire.
const SCTP_WORDS: [&str; 9] = [
    "sctp_rto_min",
    "sctp_rto_max",
    "sctp_rto_initial",
    "sctp_sack_delay",
    "sctp_sack_frequency",
    "sctp_max_burst_size",
    "sctp_max_fragment_size",
    "sctp_hb_interval",
    "sctp_path_mtu",
];

/// Reads a list of options into a flowop. Words that don't begin with a letter are ignored, as uperf does.
///
/// # Errors
/// What is wrong with which word.
pub(crate) fn apply(flowop: &mut Flowop, list: &str, environment: Environment<'_>) -> Result<(), String> {
    for word in list.split_ascii_whitespace().filter(|w| w.starts_with(|c: char| c.is_ascii_alphabetic())) {
        let Some((key, value)) = word.split_once('=') else {
            set_flag(flowop, &word.to_ascii_lowercase())?;
            continue;
        };
        let key = key.to_ascii_lowercase();
        let value = match value.strip_prefix('$') {
            Some(name) => {
                variable(name, environment).ok_or_else(|| format!("Env variable {key} = ${name} not set"))?
            }
            // What is written in a profile has no case; what comes from the environment keeps its own, and so do folders.
            None if key == "dir" => value.to_owned(),
            None => value.to_ascii_lowercase(),
        };
        set(flowop, &key, &value).map_err(|e| format!("{word}: {e}"))?;
    }
    Ok(())
}

/// uperf looks up the lower-case name only; the name as written is tried after that.
pub(crate) fn variable(name: &str, environment: Environment<'_>) -> Option<String> {
    environment(&name.to_ascii_lowercase()).or_else(|| environment(name))
}

/// What a flowop lacks or can't do, once its attributes are all there.
///
/// # Errors
/// What is missing.
pub(crate) fn check(flowop: &Flowop) -> Result<(), String> {
    let name = flowop.kind.name();
    match flowop.kind {
        Kind::Connect | Kind::Accept => {
            if flowop.remote_host.is_empty() {
                return Err(format!("{name} needs remotehost="));
            }
            if flowop.protocol == Protocol::None {
                return Err(format!("{name} needs protocol="));
            }
        }
        Kind::Read | Kind::Write | Kind::Send | Kind::Recv if flowop.largest() == 0 => {
            return Err(format!("{name} needs size="));
        }
        Kind::Sendfile if flowop.folder.is_empty() => return Err("sendfile needs dir=".into()),
        Kind::Sendfilev => return Err("sendfilev: Linux has no such call".into()),
        _ => {}
    }
    if flowop.has(flag::RANDOM_SIZE) && flowop.random.0 > flowop.random.1 {
        return Err(format!("{name}: rand({},{}) is empty", flowop.random.0, flowop.random.1));
    }
    Ok(())
}

fn set_flag(flowop: &mut Flowop, word: &str) -> Result<(), String> {
    flowop.flags |= match word {
        "tcp_nodelay" => flag::TCP_NODELAY,
        "canfail" => flag::CAN_FAIL,
        "non_blocking" => flag::NON_BLOCKING,
        "idle" => flag::IDLE,
        "busy" => flag::BUSY,
        "sctp_unordered" => flag::SCTP_UNORDERED,
        "sctp_nodelay" => flag::SCTP_NODELAY,
        _ => return Err(format!("option {word} is not of type key=value")),
    };
    Ok(())
}

fn set(flowop: &mut Flowop, key: &str, value: &str) -> Result<(), String> {
    match key {
        "remotehost" => flowop.remote_host = text(value, LONGEST_HOST)?,
        "localhost" => flowop.local_host = text(value, LONGEST_HOST)?,
        "protocol" => flowop.protocol = protocol(value)?,
        "port" => flowop.port = within(plain(value)?, 0, 65535)?,
        "wndsz" => flowop.window = u64::from(integer(value)?),
        "cc" => flowop.congestion = text(value, LONGEST_WORD)?,
        "stack" => flowop.stack = text(value, LONGEST_WORD)?,
        "bblog" => flowop.bblog = integer(value)?,
        "encaps" => flowop.encapsulation_port = within(integer(value)?, 0, 65535)?,
        "size" => size(flowop, value)?,
        "rsize" => flowop.rsize = integer(value)?,
        "count" => flowop.count = u64::from(within(plain(value)?, 1, u32::MAX)?),
        "repeat" => flowop.repeat = u64::from(within(plain(value)?, 1, u32::MAX)?),
        "batch_size" => flowop.batch = u64::from(within(plain(value)?, 1, u32::MAX)?),
        "conn" => flowop.connection = within(plain(value)?, 1, u32::MAX)?,
        "duration" => flowop.duration_ns = nanoseconds(value)?,
        "timeout" => flowop.timeout_ns = if value == "0" { 0 } else { nanoseconds(value)? },
        "dir" => flowop.folder = text(value, LONGEST_FOLDER)?,
        "nfiles" => flowop.files = integer(value)?,
        "engine" => flowop.engine = text(value, 19)?,
        "cipher" => flowop.cipher = text(value, 49)?,
        "method" => flowop.method = text(value, 4)?,
        "sctp_in_streams" => flowop.sctp.streams[1] = within(integer(value)?, 1, 65535)? as u16,
        "sctp_out_streams" => flowop.sctp.streams[0] = within(integer(value)?, 1, 65535)? as u16,
        "sctp_stream_id" => flowop.sctp.streams[2] = within(integer(value)?, 0, 65535)? as u16,
        "sctp_pr_policy" => flowop.sctp.pr_policy = text(value, LONGEST_POLICY)?,
        "sctp_pr_value" => flowop.sctp.pr_value = integer(value)?,
        _ => {
            let index = SCTP_WORDS.iter().position(|word| *word == key);
            let index = index.ok_or_else(|| format!("parser - Option unrecognized {key}={value}"))?;
            flowop.sctp.words[index] = integer(value)?;
        }
    }
    Ok(())
}

fn text(value: &str, longest: usize) -> Result<String, String> {
    if value.len() > longest {
        return Err(format!("longer than {longest} bytes"));
    }
    Ok(value.to_owned())
}

fn within(value: u32, least: u32, most: u32) -> Result<u32, String> {
    if !(least..=most).contains(&value) {
        return Err(if most == u32::MAX {
            format!("must be {least} or more")
        } else {
            format!("must be {least} to {most}")
        });
    }
    Ok(value)
}

fn protocol(value: &str) -> Result<Protocol, String> {
    let found = Protocol::ALL.into_iter().find(|p| p.name() == value);
    found.ok_or_else(|| format!("Protocol {value} not supported"))
}

fn size(flowop: &mut Flowop, value: &str) -> Result<(), String> {
    let Some(bounds) = value.strip_prefix("rand(").and_then(|v| v.strip_suffix(')')) else {
        flowop.size = within(integer(value)?, 1, u32::MAX)?;
        return Ok(());
    };
    let (least, most) = bounds.split_once(',').ok_or("rand() takes two numbers")?;
    let (least, most) = (integer(least)?, integer(most)?);
    if least == 0 || most < least {
        return Err("rand(MIN,MAX) needs 0 < MIN <= MAX".into());
    }
    flowop.random = (least, most);
    flowop.flags |= flag::RANDOM_SIZE;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(list: &str) -> Result<Flowop, String> {
        let environment = |name: &str| {
            (name == "h").then(|| "Host.Example".to_owned()).or_else(|| (name == "E").then(|| "1k".into()))
        };
        let mut flowop = Flowop::default();
        apply(&mut flowop, list, &environment)?;
        Ok(flowop)
    }

    #[test]
    fn options_are_read_and_lower_cased_but_for_the_environment() {
        let flowop =
            read("remotehost=$H protocol=TCP wndsz=50k tcp_nodelay size=8K count=10 conn=2 - 7x cc=CUBIC")
                .unwrap();
        assert_eq!(flowop.remote_host, "Host.Example");
        assert_eq!((flowop.protocol, flowop.window, flowop.size), (Protocol::Tcp, 51200, 8192));
        assert_eq!((flowop.count, flowop.connection, flowop.flags), (10, 2, flag::TCP_NODELAY));
        assert_eq!(flowop.congestion, "cubic");
        assert_eq!(read("size=$E").unwrap().size, 1024);
        assert_eq!(read("dir=/Data").unwrap().folder, "/Data");
    }

    #[test]
    fn random_sizes_have_ordered_bounds() {
        let flowop = read("size=rand(100,1k)").unwrap();
        assert!(flowop.has(flag::RANDOM_SIZE));
        assert_eq!((flowop.random, flowop.largest()), ((100, 1024), 1024));
        for bad in ["size=rand(1,", "size=rand(5,4)", "size=rand(0,4)", "size=rand(1)", "size=rand(1, 8k)"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn bad_words_are_named() {
        for (list, part) in [
            ("fast", "option fast is not of type key=value"),
            ("poll_timeout=1s", "Option unrecognized poll_timeout=1s"),
            ("protocol=ipx", "Protocol ipx not supported"),
            ("remotehost=$nobody", "Env variable remotehost = $nobody not set"),
            ("size=0", "must be 1 or more"),
            ("port=70000", "must be 0 to 65535"),
            ("repeat=0", "must be 1 or more"),
            ("sctp_pr_policy=verylongname", "longer than 7 bytes"),
        ] {
            let error = read(list).unwrap_err();
            assert!(error.contains(part), "{list}: {error}");
        }
    }

    #[test]
    fn what_would_fail_later_is_said_at_once() {
        let check_of = |kind, list| {
            let flowop = Flowop { kind, ..read(list).unwrap() };
            check(&flowop)
        };
        assert!(check_of(Kind::Write, "").is_err());
        assert!(check_of(Kind::Connect, "protocol=tcp").is_err());
        assert!(check_of(Kind::Accept, "remotehost=x").is_err());
        assert!(check_of(Kind::Sendfilev, "dir=/x").is_err());
        assert!(check_of(Kind::Think, "duration=1s busy").is_ok());
    }
}
