//! Plain text in 80 columns.

/// Widest line.
pub(crate) const WIDTH: usize = 80;

/// A line that starts with `head` and goes on with words, wrapped below where they began.
pub(crate) fn wrapped(head: &str, words: &str) -> String {
    let indent = head.chars().count();
    let mut text = String::new();
    let mut line = head.to_owned();
    let mut length = indent;
    for word in words.split_whitespace() {
        let wide = word.chars().count();
        if length > indent && length + 1 + wide > WIDTH {
            text.push_str(line.trim_end());
            text.push('\n');
            line = " ".repeat(indent);
            length = indent;
        }
        if length > indent {
            line.push(' ');
            length += 1;
        }
        line.push_str(word);
        length += wide;
    }
    text.push_str(line.trim_end());
    text.push('\n');
    text
}

/// Columns that are as wide as their widest cell, but for the last, which is wrapped.
pub(crate) fn columns(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cell = |row: &[String], column: usize| row.get(column).map_or(0, |cell| cell.chars().count());
    let widths: Vec<_> =
        (0..count).map(|column| rows.iter().map(|row| cell(row, column)).max().unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let Some((last, others)) = row.split_last() else { return "\n".to_owned() };
        let head: String =
            others.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}  ")).collect();
        wrapped(&head, last)
    };
    rows.iter().map(line).collect()
}

/// Bytes in hexadecimal, sixteen a line, with what is printable of them.
pub(crate) fn hex_dump(bytes: &[u8]) -> String {
    let line = |(number, chunk): (usize, &[u8])| {
        let hex: Vec<_> = chunk.iter().map(|byte| format!("{byte:02x}")).collect();
        let printable =
            |byte: &u8| if byte.is_ascii_graphic() || *byte == b' ' { *byte as char } else { '.' };
        let text: String = chunk.iter().map(printable).collect();
        format!("{:06x}  {:<47}  {text}\n", number * 16, hex.join(" "))
    };
    bytes.chunks(16).enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_wider_than_a_terminal_but_a_single_word() {
        let text = wrapped("head: ", &"word ".repeat(60));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
        assert!(text.lines().skip(1).all(|line| line.starts_with("      word")));
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let table = columns(&[row(["KEY", "NOW", "TAKES"]), row(["mtu", "1500", &"many words ".repeat(12)])]);
        assert!(table.starts_with("KEY  NOW   TAKES\n"), "{table}");
        assert!(table.lines().all(|line| line.chars().count() <= WIDTH), "{table}");
    }

    #[test]
    fn a_dump_shows_offset_bytes_and_text() {
        let dump = hex_dump(b"linerate\x00\xff0123456789");
        let lines: Vec<_> = dump.lines().collect();
        assert_eq!(lines[0], "000000  6c 69 6e 65 72 61 74 65 00 ff 30 31 32 33 34 35  linerate..012345");
        assert!(lines[1].starts_with("000010  36 37 38 39 ") && lines[1].ends_with("  6789"));
        assert!(lines.iter().all(|line| line.len() <= WIDTH));
    }
}
