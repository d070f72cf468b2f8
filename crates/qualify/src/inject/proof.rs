//! Which faults each case must catch: the proof that a pass means something.

use crate::case::{Case, Run};

/// Case and faults.
const TABLE: [(&str, &[&str]); 50] = [
    (
        "TX-01",
        &[
            "drop-tx",
            "duplicate",
            "reorder",
            "truncate",
            "flip-bit",
            "stale-bytes",
            "drop-lengths",
            "stuck-tx",
        ],
    ),
    ("RX-01", &["drop-rx", "duplicate", "reorder", "keep-fcs", "flip-bit", "stale-bytes", "drop-lengths"]),
    ("RX-02", &["deaf-after-giant", "cut-giants"]),
    ("DATA-01", &["swap-words", "stale-bytes", "flip-bit-mended"]),
    ("CSUM-01", &["tx-checksum-wrong", "tx-checksum-missing", "tx-checksum-over-padding"]),
    ("CSUM-02", &["rx-checksum-all-good", "drop-rx"]),
    ("CSUM-03", &["rx-checksum-over-padding", "rx-checksum-all-good"]),
    (
        "TSO-01",
        &[
            "segment-size",
            "segment-lost",
            "segment-lost-flags",
            "segment-flags-on-all",
            "segment-cwr-on-all",
            "segment-id",
            "segment-sequence",
            "tx-checksum-wrong",
        ],
    ),
    ("TX-02", &["pad-dirty", "dirty-pad"]),
    ("LIFE-01", &["deaf-after-down-up", "forget-mac"]),
    ("STAT-01", &["miscount", "duplicate-many", "drop"]),
    ("STAT-02", &["miscount"]),
    ("FILT-01", &["leak-unicast", "ignore-promisc", "stay-promisc", "drop-half"]),
    ("FILT-02", &["miss-groups", "leak-multicast", "ignore-allmulti"]),
    ("FILT-03", &["miss-groups", "swap-words"]),
    ("VLAN-01", &["mangle-tag", "lose-priority", "lose-tag-tx", "strip-tag-twice", "double-tag"]),
    ("VLAN-02", &["lose-tag-tx", "mangle-tag"]),
    ("MTU-01", &["drop-all"]),
    ("MTU-02", &["drop-long"]),
    ("FRAG-01", &["drop-fragments", "flip-bit-mended"]),
    ("OFFL-01", &["swap-words"]),
    ("LINK-01", &["flap-carrier"]),
    ("LINK-02", &["deaf-after-down-up"]),
    ("MAC-01", &["ignore-new-mac"]),
    ("MAC-02", &["ignore-new-mac"]),
    ("STRESS-01", &["swap-words"]),
    ("STRESS-02", &["swap-words"]),
    ("STRESS-03", &["swap-words", "drop-half"]),
    ("TX-03", &["swap-words", "tx-checksum-wrong"]),
    ("TSO-02", &["swap-words"]),
    ("TSO-03", &["segment-size", "segment-lost"]),
    ("GRO-01", &["merge-wrongly", "flip-bit-mended"]),
    ("GRO-03", &["swap-words", "drop"]),
    ("XDP-01", &["drop", "flip-bit"]),
    ("CSUM-04", &["tx-checksum-zero"]),
    ("CSUM-05", &["rx-checksum-all-good", "drop-fragments"]),
    ("CSUM-06", &["drop-rx"]),
    ("CSUM-07", &["tx-checksum-wrong"]),
    ("CSUM-08", &["drop-odd"]),
    ("CSUM-09", &["tx-checksum-wrong", "rx-checksum-all-good"]),
    ("USO-01", &["segment-size", "segment-lost"]),
    ("VLAN-03", &["mangle-tag", "lose-tag-tx"]),
    ("VLAN-05", &["mangle-tag", "segment-lost"]),
    ("FILT-04", &["drop-half"]),
    ("FILT-05", &["miss-groups"]),
    ("FILT-06", &["forget-multicast"]),
    ("NAPI-01", &["swap-words"]),
    ("TS-01", &["drop-half"]),
    ("BOND-01", &["drop", "stay-promisc"]),
    ("FORW-01", &["swap-words", "tx-checksum-missing"]),
];

/// The faults that a case must catch: its own and those of the table. None for one that the suite does not have.
pub fn faults_of(case: &Case) -> Vec<&'static str> {
    if !matches!(case.run, Run::Offered { .. }) {
        return Vec::new();
    }
    let of_table = TABLE.iter().find(|(id, _)| *id == case.id).map_or(&[][..], |(_, faults)| faults);
    let mut faults = case.faults.to_vec();
    faults.extend(of_table.iter().filter(|fault| !case.faults.contains(fault)));
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{self, CATALOGUE};
    use crate::inject::parse_faults;

    #[test]
    fn cases_and_faults_of_the_table_are_there() {
        for (id, faults) in TABLE {
            assert!(catalogue::find(id).is_some(), "{id}");
            assert!(!faults.is_empty(), "{id}");
        }
        for case in CATALOGUE {
            let faults = faults_of(case);
            assert!(parse_faults(&faults.join(",")).is_ok(), "{}: {faults:?}", case.id);
        }
    }
}
