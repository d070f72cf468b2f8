//! What values settings take, checked before anything is written.

use serde::{Deserialize, Serialize};

use crate::error::{LinkError, Result};

/// Highest CPU number taken for real (`CONFIG_NR_CPUS` is at most this on x86-64 and arm64).
const MAX_CPU: u32 = 8192;

/// The values that a setting takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "type")]
pub enum Allowed {
    /// `on` or `off`.
    Switch,
    /// A whole number.
    Number {
        /// Least.
        min: u64,
        /// Most.
        max: u64,
    },
    /// One of some words.
    Choice {
        /// Those that are known.
        known: Vec<String>,
        /// Others are passed on: the kernel can load what it does not list.
        others: bool,
    },
    /// CPUs as a hexadecimal mask, one for all queues or one for each, separated by `/`.
    CpuMask,
    /// CPUs as a list of numbers and ranges (`0-3+8`), one for all interrupts or one for each, separated by `/`.
    CpuList,
    /// Six bytes, as `02:00:00:00:00:01`.
    MacAddress,
    /// Any text in one line; the kernel alone knows what it takes.
    Text,
}

impl Allowed {
    /// The value as it is written and compared: `yes` becomes `on`, `0xF` becomes `f`.
    ///
    /// # Errors
    /// [`LinkError::Invalid`] that says what is allowed; `what` is the setting with its value.
    pub fn check(&self, what: &str, value: &str) -> Result<String> {
        let value = value.trim();
        let invalid = |why: String| LinkError::Invalid { what: what.to_owned(), why };
        let allowed = || invalid(format!("allowed is {self}"));
        match self {
            Self::Switch => switch(value).map(|on| on_off(on).to_owned()).ok_or_else(allowed),
            Self::Number { min, max } => match value.parse::<u64>() {
                Ok(number) if (*min..=*max).contains(&number) => Ok(number.to_string()),
                _ => Err(allowed()),
            },
            Self::Choice { known, others } => {
                let word = !value.is_empty() && value.chars().all(|c| c.is_ascii_graphic());
                if known.iter().any(|known| known == value) || *others && word {
                    Ok(value.to_owned())
                } else {
                    Err(allowed())
                }
            }
            Self::CpuMask => each(value, mask).ok_or_else(allowed),
            Self::CpuList => each(value, cpu_list).ok_or_else(allowed),
            Self::MacAddress => mac_bytes(value).map(|mac| mac_text(&mac)).ok_or_else(allowed),
            Self::Text if value.is_empty() || value.contains(['\n', '\0']) => Err(allowed()),
            Self::Text => Ok(value.split_whitespace().collect::<Vec<_>>().join(" ")),
        }
    }
}

impl std::fmt::Display for Allowed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Switch => write!(f, "on, off"),
            Self::Number { min, max: u64::MAX } => write!(f, "{min} and more"),
            Self::Number { min, max } if *max == u64::from(u32::MAX) => write!(f, "{min} and more"),
            Self::Number { min, max } => write!(f, "{min} to {max}"),
            Self::Choice { known, others } => {
                write!(f, "{}", known.join(", "))?;
                match others {
                    true => write!(f, ", others that the kernel has"),
                    false => Ok(()),
                }
            }
            Self::CpuMask => write!(f, "a hexadecimal mask of CPUs (f), or one a queue (1/2)"),
            Self::CpuList => write!(f, "a list of CPUs (0-1+4), or one an interrupt (0/1)"),
            Self::MacAddress => write!(f, "six bytes (02:00:00:00:00:01)"),
            Self::Text => write!(f, "what the kernel takes"),
        }
    }
}

/// `on` or `off`.
pub(crate) const fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// The usual words for on and off.
pub(crate) fn switch(value: &str) -> Option<bool> {
    match value {
        "on" | "1" | "true" | "yes" => Some(true),
        "off" | "0" | "false" | "no" => Some(false),
        _ => None,
    }
}

/// A hardware address by its text.
pub(crate) fn mac_bytes(text: &str) -> Option<[u8; 6]> {
    let byte = |part: &str| {
        let good = (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        good.then(|| u8::from_str_radix(part, 16).ok()).flatten()
    };
    text.split([':', '-']).map(byte).collect::<Option<Vec<_>>>()?.try_into().ok()
}

/// A hardware address as the kernel's tools write it.
pub(crate) fn mac_text(mac: &[u8]) -> String {
    mac.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

/// One value for all, or one for each, separated by `/`; equal ones become one.
fn each(value: &str, one: impl Fn(&str) -> Option<String>) -> Option<String> {
    let all = value.split('/').map(one).collect::<Option<Vec<_>>>()?;
    Some(joined(&all))
}

/// Equal values as one, others separated by `/`.
pub(crate) fn joined(values: &[String]) -> String {
    match values {
        [first, rest @ ..] if rest.iter().all(|other| other == first) => first.clone(),
        values => values.join("/"),
    }
}

/// The values for `count` queues or interrupts of a checked value.
///
/// # Errors
/// [`LinkError::Invalid`] where it has neither one nor `count`.
pub(crate) fn spread<'a>(what: &str, value: &'a str, count: usize) -> Result<Vec<&'a str>> {
    let parts: Vec<_> = value.split('/').collect();
    match parts.as_slice() {
        [one] => Ok(vec![one; count]),
        parts if parts.len() == count => Ok(parts.to_vec()),
        parts => Err(LinkError::Invalid {
            what: what.to_owned(),
            why: format!("{} values for {count}: give one for all, or one for each", parts.len()),
        }),
    }
}

/// A mask as the kernel shows it (`00000000,000000ff`) or a user writes it (`0xFF`), without zeros in front.
pub(crate) fn mask(text: &str) -> Option<String> {
    let digits = text.strip_prefix("0x").unwrap_or(text).replace(',', "").to_ascii_lowercase();
    let good = (1..=MAX_CPU as usize / 4).contains(&digits.len())
        && digits.chars().all(|digit| digit.is_ascii_hexdigit());
    let digits = digits.trim_start_matches('0');
    good.then(|| if digits.is_empty() { "0" } else { digits }.to_owned())
}

/// A mask of [`mask`] with a comma every 32 bits, as the kernel takes it (bitmap_parse()).
pub(crate) fn mask_for_kernel(mask: &str) -> String {
    let groups: Vec<_> = mask.as_bytes().rchunks(8).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// A list of CPUs, sorted, in ranges; `+` or `,` separates, for in a list of levels `,` separates levels.
pub(crate) fn cpu_list(text: &str) -> Option<String> {
    let mut cpus = Vec::new();
    for part in text.split([',', '+']) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?);
        if first > last || last >= MAX_CPU {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let range = |(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    Some(ranges.iter().map(range).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn checked(allowed: &Allowed, value: &str) -> std::result::Result<String, String> {
        allowed.check(&format!("x={value}"), value).map_err(|error| error.to_string())
    }

    #[test]
    fn values_are_made_uniform() {
        assert_eq!(checked(&Allowed::Switch, "yes").unwrap(), "on");
        assert_eq!(checked(&Allowed::CpuMask, "0x0F").unwrap(), "f");
        assert_eq!(checked(&Allowed::CpuMask, "00000000,00000003/3").unwrap(), "3");
        assert_eq!(checked(&Allowed::CpuMask, "1/2").unwrap(), "1/2");
        assert_eq!(checked(&Allowed::CpuList, "4+0-1,1").unwrap(), "0-1,4");
        assert_eq!(checked(&Allowed::MacAddress, "2:0:0:0:0:A").unwrap(), "02:00:00:00:00:0a");
        assert!(checked(&Allowed::MacAddress, "02:00:00:00:00").is_err());
        assert_eq!(checked(&Allowed::Text, "1 \t2").unwrap(), "1 2");
        assert_eq!(mask_for_kernel("123456789"), "1,23456789");
        assert_eq!(spread("x", "1/2", 2).unwrap(), ["1", "2"]);
        assert!(spread("x", "1/2", 3).is_err());
    }

    #[test]
    fn what_is_not_allowed_is_refused_with_what_is() {
        let number = Allowed::Number { min: 68, max: 9000 };
        assert_eq!(checked(&number, "67").unwrap_err(), "x=67: allowed is 68 to 9000");
        assert_eq!(checked(&Allowed::Switch, "maybe").unwrap_err(), "x=maybe: allowed is on, off");
        let kinds = |others| Allowed::Choice { known: vec!["fq".to_owned()], others };
        assert!(checked(&kinds(false), "sfq").is_err());
        assert!(checked(&kinds(true), "sfq").is_ok() && checked(&kinds(true), "a b").is_err());
        for list in ["", "3-1", "x", "9999999", "1-"] {
            assert!(checked(&Allowed::CpuList, list).is_err(), "{list}");
        }
        assert!(checked(&Allowed::CpuMask, "").is_err() && checked(&Allowed::CpuMask, "g").is_err());
        assert!(checked(&Allowed::Text, "a\nb").is_err());
    }

    proptest! {
        #[test]
        fn hostile_values_never_panic_and_what_is_taken_stays(value in ".{0,40}") {
            for allowed in [Allowed::Switch, Allowed::MacAddress, Allowed::CpuMask, Allowed::CpuList, Allowed::Text] {
                if let Ok(once) = allowed.check("x", &value) {
                    prop_assert_eq!(allowed.check("x", &once).unwrap(), once);
                }
            }
        }
    }
}
