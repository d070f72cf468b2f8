//! Type of service and DSCP by number or name (RFC 2474, RFC 2597, RFC 3246, RFC 5865, RFC 1349).

/// A whole TOS byte: decimal, `0x` hexadecimal, `0` octal.
pub(super) fn parse_tos(text: &str) -> Option<u8> {
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u8::from_str_radix(hex, 16).ok();
    }
    if text.len() > 1 && text.starts_with('0') {
        return u8::from_str_radix(&text[1..], 8).ok();
    }
    text.parse().ok()
}

/// A DSCP as the TOS byte that holds it.
pub(super) fn parse_dscp(text: &str) -> Option<u8> {
    let name = text.to_ascii_lowercase();
    let code = match name.as_str() {
        "ef" => 46,
        "va" => 44,
        "lowdelay" => return Some(0x10),
        "throughput" => return Some(0x08),
        "reliability" => return Some(0x04),
        _ => class_selector(&name).or_else(|| assured(&name)).or_else(|| parse_tos(&name))?,
    };
    (code < 64).then_some(code << 2)
}

fn class_selector(name: &str) -> Option<u8> {
    let class: u8 = name.strip_prefix("cs")?.parse().ok()?;
    (class < 8).then_some(class * 8)
}

fn assured(name: &str) -> Option<u8> {
    let [class, drop] = *name.strip_prefix("af")?.as_bytes().first_chunk::<2>()?;
    let (class, drop) = (class.checked_sub(b'0')?, drop.checked_sub(b'0')?);
    (name.len() == 4 && (1..=4).contains(&class) && (1..=3).contains(&drop)).then_some(class * 8 + drop * 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_read() {
        assert_eq!(parse_dscp("ef"), Some(184));
        assert_eq!(parse_dscp("AF11"), Some(40));
        assert_eq!(parse_dscp("af43"), Some(38 << 2));
        assert_eq!(parse_dscp("cs7"), Some(224));
        assert_eq!(parse_dscp("46"), Some(184));
        assert_eq!(parse_dscp("64"), None);
        assert_eq!(parse_dscp("af44"), None);
        assert_eq!(parse_tos("0x10"), Some(16));
        assert_eq!(parse_tos("010"), Some(8));
        assert_eq!(parse_tos("255"), Some(255));
        assert_eq!(parse_tos("256"), None);
    }
}
