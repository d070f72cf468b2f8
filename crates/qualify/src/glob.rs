//! Names with `*` for any text and `?` for any letter, as fnmatch(3) has them.

/// Whether the whole of `text` matches, whatever its case.
pub fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.to_lowercase().chars().collect();
    let text: Vec<char> = text.to_lowercase().chars().collect();
    let (mut p, mut t) = (0, 0);
    let mut star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(letter) if *letter == '?' || *letter == text[t] => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((at, from)) = star else { return false };
                star = Some((at, from + 1));
                p = at + 1;
                t = from + 1;
            }
        }
    }
    pattern[p..].iter().all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_and_question_marks_match() {
        for (pattern, text) in [
            ("csum.*", "csum.csum-01.v4_udp"),
            ("CSUM-03", "csum-03"),
            ("*", ""),
            ("*v6*", "tso.tso-01.v6"),
            ("tx-0?", "tx-02"),
            ("a*b*c", "axxbyyc"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("csum", "csum.x"), ("tx-0?", "tx-012"), ("a*b", "abc"), ("", "a")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
