//! Splits a command line the way getopt_long(3) does: clusters, `--name=value`, unambiguous beginnings of names.

/// Whether an option has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    No,
    Must,
    /// Only as `--name=value` or `-xvalue`.
    May,
}

/// An option: its letter, its long name, its value.
pub(super) type Spec = (Option<char>, &'static str, Value);

/// An option that was found: its long name and its value.
pub(super) type Found = (&'static str, Option<String>);

/// Splits the words behind the program's name.
///
/// # Errors
/// An unknown or ambiguous option, a missing or unwanted value, or a word that is no option.
pub(super) fn split(specs: &[Spec], words: &[String]) -> Result<Vec<Found>, String> {
    let mut found = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if word == "--" {
            break;
        } else if let Some(long) = word.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            let (_, name, wants) = *long_spec(specs, name)?;
            let value = match (wants, value) {
                (Value::No, Some(_)) => return Err(format!("option --{name} takes no value")),
                (Value::Must, None) => Some(next(&mut rest, &format!("--{name}"))?),
                (_, value) => value,
            };
            found.push((name, value));
        } else if let Some(cluster) = word.strip_prefix('-').filter(|c| !c.is_empty()) {
            split_cluster(specs, cluster, &mut rest, &mut found)?;
        } else {
            return Err(format!("unexpected argument '{word}'"));
        }
    }
    match rest.next() {
        Some(word) => Err(format!("unexpected argument '{word}'")),
        None => Ok(found),
    }
}

fn split_cluster<'a>(
    specs: &[Spec],
    cluster: &str,
    rest: &mut impl Iterator<Item = &'a String>,
    found: &mut Vec<Found>,
) -> Result<(), String> {
    for (at, letter) in cluster.char_indices() {
        let spec = specs.iter().find(|(short, ..)| *short == Some(letter));
        let Some(&(_, name, wants)) = spec else { return Err(format!("unknown option -{letter}")) };
        let tail = &cluster[at + letter.len_utf8()..];
        match wants {
            Value::No => found.push((name, None)),
            Value::May => {
                found.push((name, (!tail.is_empty()).then(|| tail.to_owned())));
                return Ok(());
            }
            Value::Must => {
                let value =
                    if tail.is_empty() { next(rest, &format!("-{letter}"))? } else { tail.to_owned() };
                found.push((name, Some(value)));
                return Ok(());
            }
        }
    }
    Ok(())
}

fn long_spec<'a>(specs: &'a [Spec], name: &str) -> Result<&'a Spec, String> {
    if let Some(exact) = specs.iter().find(|(_, long, _)| *long == name) {
        return Ok(exact);
    }
    let mut candidates = specs.iter().filter(|(_, long, _)| !name.is_empty() && long.starts_with(name));
    match (candidates.next(), candidates.next()) {
        (Some(only), None) => Ok(only),
        (Some(_), Some(_)) => Err(format!("option --{name} is ambiguous")),
        (None, _) => Err(format!("unknown option --{name}")),
    }
}

fn next<'a>(rest: &mut impl Iterator<Item = &'a String>, option: &str) -> Result<String, String> {
    rest.next().cloned().ok_or_else(|| format!("option {option} needs a value"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECS: &[Spec] = &[
        (Some('u'), "udp", Value::No),
        (Some('P'), "parallel", Value::Must),
        (Some('t'), "time", Value::Must),
        (Some('d'), "debug", Value::May),
        (None, "timestamps", Value::May),
        (None, "title", Value::Must),
    ];

    fn parsed(line: &str) -> Result<Vec<(&'static str, Option<String>)>, String> {
        split(SPECS, &line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn clusters_and_long_names_are_split() {
        let value = |text: &str| Some(text.to_owned());
        assert_eq!(
            parsed("-uP4 -t 5").unwrap(),
            [("udp", None), ("parallel", value("4")), ("time", value("5"))]
        );
        assert_eq!(parsed("--time=5 --par 2").unwrap(), [("time", value("5")), ("parallel", value("2"))]);
        assert_eq!(parsed("-d --timestamps").unwrap(), [("debug", None), ("timestamps", None)]);
        assert_eq!(
            parsed("-d2 --timestamps=%s").unwrap(),
            [("debug", value("2")), ("timestamps", value("%s"))]
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, part) in [
            ("-x", "-x"),
            ("--nosuch", "--nosuch"),
            ("--ti 5", "ambiguous"),
            ("-P", "needs a value"),
            ("--udp=1", "takes no value"),
            ("word", "word"),
            ("-u -- word", "word"),
        ] {
            let error = parsed(line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
