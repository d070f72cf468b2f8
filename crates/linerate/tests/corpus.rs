//! The corpus of each fuzz target, also cut short and damaged, as a normal test.

use std::path::Path;

type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 8] = [
    ("words", linerate_model::fuzz::fuzz_parse),
    ("agent", linerate_agent::fuzz::fuzz_decode),
    ("traffic", linerate_traffic::fuzz::fuzz_decode),
    ("netlink", linerate_link::ethtool::fuzz_decode),
    ("netperf", linerate_compat::netperf::wire::fuzz_decode),
    ("iperf3", linerate_compat::iperf3::server_control::fuzz_decode),
    ("uperf", linerate_compat::uperf::wire::fuzz_decode),
    ("ttcp", linerate_compat::ttcp::fuzz_decode),
];

fn fuzz_folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz"))
}

#[test]
fn no_decoder_panics_on_its_corpus() {
    for (name, decode) in TARGETS {
        let folder = fuzz_folder().join("corpus").join(name);
        let mut files = 0;
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            println!("{}", path.display());
            decode(&bytes);
            // A long input is damaged at some places, a short one at all.
            let step = bytes.len() / 256 + 1;
            for at in (0..bytes.len()).step_by(step) {
                decode(&bytes[..at]);
                let mut damaged = bytes.clone();
                for wrong in [0, 0xff, bytes[at] ^ 1, bytes[at] ^ 0x80] {
                    damaged[at] = wrong;
                    decode(&damaged);
                }
            }
            files += 1;
        }
        assert!(files > 1, "{} has too little to start from", folder.display());
    }
}

#[test]
fn every_target_has_its_corpus_tested() {
    let mut targets: Vec<String> = std::fs::read_dir(fuzz_folder().join("fuzz_targets"))
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    targets.sort();
    let mut tested = TARGETS.map(|(name, _)| name);
    tested.sort_unstable();
    assert_eq!(targets, tested);
}
