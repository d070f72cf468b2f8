//! Lines of text: colour, and breaking at spaces.

/// How a piece of text stands out on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Titles.
    Bold,
    /// Explanations.
    Dim,
    /// Reasons for distrust.
    Yellow,
    /// What is wrong.
    Red,
}

/// `text` with the escape sequence of its style (ECMA-48, SGR) where colour is wanted.
pub(crate) fn paint(text: &str, style: Style, color: bool) -> String {
    if !color || text.is_empty() {
        return text.to_owned();
    }
    let code = match style {
        Style::Bold => "1",
        Style::Dim => "2",
        Style::Yellow => "33",
        Style::Red => "31",
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// Breaks a text at spaces into lines of at most `width` characters: the first begins with `first`, the others with as
/// many spaces as `indent` says. A word that is longer than a line is left whole; a no-break space ([`NBSP`]) is a space
/// that is never broken.
pub(crate) fn wrap(first: &str, indent: usize, text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let mut used = line.chars().count();
    let mut at_start = true;
    for word in text.split(' ').filter(|w| !w.is_empty()) {
        let length = word.chars().count();
        if !at_start && used + 1 + length > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
            used = indent;
            at_start = true;
        }
        if !at_start {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += length;
        at_start = false;
    }
    lines.push(line.trim_end().to_owned());
    lines.into_iter().map(|line| line.replace(NBSP, " ")).collect()
}

/// No-break space: [`wrap`] keeps what it joins on one line.
pub(crate) const NBSP: char = '\u{a0}';

/// Keeps a short phrase, such as a number and its unit, on one line.
pub(crate) fn unbroken(phrase: &str) -> String {
    phrase.replace(' ', "\u{a0}")
}

/// A text from another machine or from the kernel without characters that could steer a terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breaks_at_spaces_only() {
        assert_eq!(wrap("- ", 2, "one two three", 9), ["- one two", "  three"]);
        assert_eq!(wrap("", 2, "abcdefghij k", 5), ["abcdefghij", "  k"]);
        assert_eq!(wrap("a: ", 3, "", 5), ["a:"]);
        assert_eq!(wrap("", 0, &format!("MTU {}", unbroken("1500 bytes")), 10), ["MTU", "1500 bytes"]);
    }

    #[test]
    fn colour_only_where_wanted() {
        assert_eq!(paint("x", Style::Red, false), "x");
        assert_eq!(paint("x", Style::Red, true), "\x1b[31mx\x1b[0m");
        assert_eq!(printable("a\x1b[2Jb\n"), "a [2Jb ");
    }
}
