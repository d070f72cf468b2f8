//! Command lines as getopt(3) reads them: letters together or apart, values attached or next.

/// A letter and its value, if it takes one.
pub(crate) type Found = (char, Option<String>);

/// Why a command line can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GetoptError {
    /// No such letter.
    #[error("invalid option -- '{0}'")]
    Unknown(char),
    /// The value is missing.
    #[error("option requires an argument -- '{0}'")]
    NoValue(char),
}

/// Reads `words` by a getopt specification (`ab:` is `-a` and `-b VALUE`); `;` after a letter is a value that is taken only
/// if it is attached, or next and begins with a digit. Stops at `--`; returns what was found and the words that remain
/// (behind `--`, or that are no options).
pub(crate) fn parse(words: &[String], spec: &str) -> Result<(Vec<Found>, Vec<String>), GetoptError> {
    let mut found = Vec::new();
    let mut rest = Vec::new();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        if word == "--" {
            rest.extend(words.cloned());
            break;
        }
        let Some(letters) = word.strip_prefix('-').filter(|l| !l.is_empty()) else {
            rest.push(word.clone());
            continue;
        };
        for (at, letter) in letters.char_indices() {
            let behind = &letters[at + letter.len_utf8()..];
            match kind_of(spec, letter).ok_or(GetoptError::Unknown(letter))? {
                Kind::Flag => {
                    found.push((letter, None));
                    continue;
                }
                _ if !behind.is_empty() => found.push((letter, Some(behind.to_owned()))),
                Kind::Value => {
                    let value = words.next().ok_or(GetoptError::NoValue(letter))?;
                    found.push((letter, Some(value.clone())));
                }
                Kind::Digits => {
                    let value = words.next_if(|next| next.starts_with(|c: char| c.is_ascii_digit()));
                    found.push((letter, value.cloned()));
                }
                Kind::Optional => {
                    let value = words.next_if(|next| !next.starts_with('-'));
                    found.push((letter, value.cloned()));
                }
            }
            break;
        }
    }
    Ok((found, rest))
}

enum Kind {
    Flag,
    Value,
    /// `;`
    Digits,
    /// `?`: the next word if it is no option.
    Optional,
}

fn kind_of(spec: &str, letter: char) -> Option<Kind> {
    if matches!(letter, ':' | ';' | '?') {
        return None;
    }
    let behind = &spec[spec.find(letter)? + letter.len_utf8()..];
    Some(match behind.chars().next() {
        Some(':') => Kind::Value,
        Some(';') => Kind::Digits,
        Some('?') => Kind::Optional,
        _ => Kind::Flag,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn letters_and_values_are_found() {
        let (found, rest) = parse(&words("-ab5 -b -7 -c 100 -c -d x -- -a"), "ab:c;d?").unwrap();
        let expected = [
            ('a', None),
            ('b', Some("5")),
            ('b', Some("-7")),
            ('c', Some("100")),
            ('c', None),
            ('d', Some("x")),
        ];
        let expected: Vec<Found> = expected.map(|(l, v)| (l, v.map(str::to_owned))).to_vec();
        assert_eq!((found, rest), (expected, words("-a")));
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert_eq!(parse(&words("-x"), "a"), Err(GetoptError::Unknown('x')));
        assert_eq!(parse(&words("-a"), "a:"), Err(GetoptError::NoValue('a')));
        assert_eq!(parse(&words("-é"), "a"), Err(GetoptError::Unknown('é')));
    }
}
