//! Lists of values on the command line: `128,256,1K,...,64K`.

use crate::units::{ByteCount, UnitError};

/// Expands a comma list of sizes; `...` continues by doubling the value before it up to the value behind it.
///
/// # Errors
/// Where a part is no size, or `...` does not stand between a value above 0 and a larger one.
pub fn expand_sizes(text: &str) -> Result<Vec<ByteCount>, UnitError> {
    let bad_dots = || UnitError {
        text: text.to_owned(),
        expected: "a list of sizes ('...' stands between a value above 0 and a larger one: 128,...,64K)",
    };
    let mut values: Vec<ByteCount> = Vec::new();
    let mut continues = false;
    for part in text.split(',') {
        let part = part.trim();
        if part == "..." {
            if continues || values.last().is_none_or(|v| v.0 == 0) {
                return Err(bad_dots());
            }
            continues = true;
            continue;
        }
        let value: ByteCount = part.parse()?;
        if continues {
            let last = values.last().copied().unwrap_or_default();
            if value <= last {
                return Err(bad_dots());
            }
            let doubled = std::iter::successors(last.0.checked_mul(2), |v| v.checked_mul(2));
            values.extend(doubled.take_while(|&v| v < value.0).map(ByteCount));
            continues = false;
        }
        values.push(value);
    }
    if continues {
        return Err(bad_dots());
    }
    Ok(values)
}

/// Parses a CPU list as the kernel writes them: `0,2-4`. At most 4096 entries.
///
/// # Errors
/// Where the text is no such list.
pub fn parse_cpu_list(text: &str) -> Result<Vec<u32>, UnitError> {
    let error = || UnitError { text: text.to_owned(), expected: "a list of CPUs (0 or 0,2-4)" };
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: u32 = first.trim().parse().map_err(|_| error())?;
        let last: u32 = last.trim().parse().map_err(|_| error())?;
        if first > last || last - first >= 4096 || cpus.len() > 4096 {
            return Err(error());
        }
        cpus.extend(first..=last);
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(text: &str) -> Option<Vec<u64>> {
        expand_sizes(text).ok().map(|v| v.into_iter().map(|b| b.0).collect())
    }

    #[test]
    fn dots_continue_the_doubling() {
        assert_eq!(sizes("128,256,1K,...,8K"), Some(vec![128, 256, 1024, 2048, 4096, 8192]));
        assert_eq!(sizes("100,...,350"), Some(vec![100, 200, 350]));
        assert_eq!(sizes("64"), Some(vec![64]));
        for wrong in ["", "...", "1,...", "...,4", "4,...,4", "0,...,4", "1,...,...,4", "1,,2"] {
            assert_eq!(sizes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn cpu_lists() {
        assert_eq!(parse_cpu_list("0,2-4").unwrap(), [0, 2, 3, 4]);
        for wrong in ["", "a", "3-1", "0-99999", "1-"] {
            assert!(parse_cpu_list(wrong).is_err(), "{wrong}");
        }
    }
}
