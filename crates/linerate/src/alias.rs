//! The names that linerate also answers to: a link `netperf` to linerate is netperf.

use std::ffi::OsString;
use std::path::Path;

/// Names of tools that linerate stands in for, each a subcommand too.
pub(crate) const NAMES: [&str; 5] = ["netperf", "netserver", "iperf3", "uperf", "ttcp"];

/// The command line with the subcommand that the program's own name stands for, if it is one of [`NAMES`].
pub(crate) fn resolve(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.into_iter().collect();
    let called = words.first().and_then(|word| Path::new(word).file_name()?.to_str().map(str::to_owned));
    // In a guest the kernel calls it so, as `modprobe -q -- NAME`.
    if called.as_deref() == Some("modprobe") {
        let module = words.pop().unwrap_or_default();
        return vec!["linerate".into(), "guest".into(), "--module".into(), module];
    }
    if let Some(name) = called.filter(|name| NAMES.contains(&name.as_str())) {
        words.insert(1, name.into());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(words: &[&str]) -> Vec<String> {
        resolve(words.iter().map(OsString::from)).into_iter().map(|w| w.into_string().unwrap()).collect()
    }

    #[test]
    fn the_name_it_is_called_by_is_the_subcommand() {
        assert_eq!(resolved(&["/usr/bin/netperf", "-H", "x"]), ["/usr/bin/netperf", "netperf", "-H", "x"]);
        let asked = resolved(&["/sbin/modprobe", "-q", "--", "rtnl-link-vlan"]);
        assert_eq!(asked, ["linerate", "guest", "--module", "rtnl-link-vlan"]);
        assert_eq!(resolved(&["linerate", "run"]), ["linerate", "run"]);
        assert_eq!(resolved(&[]), Vec::<String>::new());
    }
}
