//! What a node's agent may do.

use crate::case::Privilege;
use crate::station::Station;
use crate::trouble::Trouble;

const NET_ADMIN: u32 = 12;
const NET_RAW: u32 = 13;
const SYS_ADMIN: u32 = 21;
const BPF: u32 = 39;

/// The most that a station's agent may do.
pub(crate) fn of(station: &mut Station) -> Result<Privilege, Trouble> {
    let status = station.read_file("/proc/self/status")?.unwrap_or_default();
    let map = station.read_file("/proc/self/uid_map")?.unwrap_or_default();
    Ok(read(&status, &map))
}

fn read(status: &str, uid_map: &str) -> Privilege {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or_default();
    let may = |capability: u32| effective & (1 << capability) != 0;
    let first_namespace = uid_map.split_whitespace().eq(["0", "0", "4294967295"]);
    match () {
        () if first_namespace && may(SYS_ADMIN) && may(NET_ADMIN) && may(NET_RAW) => Privilege::Root,
        () if first_namespace && may(BPF) && may(NET_ADMIN) && may(NET_RAW) => Privilege::Bpf,
        () if may(NET_ADMIN) && may(NET_RAW) => Privilege::Admin,
        () if may(NET_RAW) => Privilege::Raw,
        () => Privilege::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_count_by_their_namespace() {
        let first = "         0          0 4294967295\n";
        let own = "         0       1000          1\n";
        let all = "Name:\tx\nCapEff:\t000001ffffffffff\n";
        assert_eq!(read(all, first), Privilege::Root);
        assert_eq!(read(all, own), Privilege::Admin);
        assert_eq!(read("CapEff:\t0000000000002000\n", first), Privilege::Raw);
        assert_eq!(read("CapEff:\t0000000000000000\n", first), Privilege::None);
    }
}
