use std::collections::BTreeSet;

use linerate_model::bench::PortOptions;
use proptest::prelude::*;

use super::*;

fn spec(header_bytes: u32, latency: bool) -> TallySpec {
    let port = PortOptions { link: "lo".to_owned(), ..PortOptions::default() };
    TallySpec { port, run: 9, streams: vec![1, 2], header_bytes, latency }
}

fn frame(id: ProbeId, sent_ns: Option<u64>, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; 14 + length];
    probe::write(id, sent_ns, &mut bytes[14..]);
    bytes
}

fn captured(bytes: &[u8], time_ns: u64, tag: Option<(u16, u16)>) -> Captured<'_> {
    Captured {
        bytes,
        offload: [0; 10],
        length: bytes.len() as u32,
        time_ns,
        tag,
        checksum_valid: false,
        checksum_not_ready: false,
        packet_type: 0,
    }
}

const ID: ProbeId = ProbeId { run: 9, stream: 1, sequence: 0 };

#[test]
fn each_kind_of_fault_is_told_from_the_others() {
    let mut book = Book::new(spec(0, false));
    let whole = frame(ID, None, 100);
    assert!(book.enter(captured(&whole, 10, None), false).unwrap());
    assert!(book.enter(captured(&whole, 20, None), false).unwrap());
    assert!(book.enter(captured(&frame(ProbeId { sequence: 5, ..ID }, None, 60), 90, None), false).unwrap());
    assert!(book.enter(captured(&frame(ProbeId { sequence: 3, ..ID }, None, 60), 95, None), false).unwrap());
    let mut flipped = frame(ProbeId { sequence: 1, ..ID }, None, 100);
    flipped[80] ^= 4;
    assert!(book.enter(captured(&flipped, 96, None), false).unwrap());
    let mut renamed = frame(ProbeId { sequence: 2, ..ID }, None, 100);
    renamed[14] ^= 4;
    assert!(book.enter(captured(&renamed, 97, None), false).unwrap());
    assert!(book.enter(captured(&whole[..90], 98, None), false).unwrap());
    for foreign in [ProbeId { run: 8, ..ID }, ProbeId { stream: 3, ..ID }] {
        assert!(!book.enter(captured(&frame(foreign, None, 100), 99, None), false).unwrap());
    }
    assert!(!book.enter(captured(&[0; 60], 99, None), false).unwrap());
    let tally = book.close();
    assert_eq!((tally.whole, tally.whole_bytes, tally.duplicates, tally.reordered), (3, 114 + 74 + 74, 1, 1));
    assert_eq!((tally.damaged, tally.truncated, tally.missing_count), (2, 1, 3));
    assert_eq!((tally.highest, tally.missing), (vec![(1, 5)], vec![(1, 1), (1, 2), (1, 4)]));
    assert_eq!((tally.elapsed_ns, tally.longest_gap_ns, tally.examples.len()), (88, 70, 5));
}

#[test]
fn a_stripped_tag_is_not_looked_for_in_the_frame() {
    let mut book = Book::new(spec(6, false));
    let stripped = frame(ID, None, 100);
    assert!(book.enter(captured(&stripped, 1, Some((0x8100, 5))), false).unwrap());
    let mut kept = stripped.clone();
    kept.splice(12..12, [0x81, 0, 0, 5]);
    assert!(book.enter(captured(&kept, 2, None), false).unwrap());
    let tally = book.close();
    assert_eq!((tally.whole, tally.duplicates), (1, 1));
}

#[test]
fn latency_is_told_only_where_the_clocks_can_be_one() {
    for (sent_ns, wanted) in [(400, Some([100, 300, 600, 600])), (1001, None)] {
        let mut book = Book::new(spec(0, true));
        for (sequence, sent_ns) in [(0, sent_ns), (1, 700), (2, 900)] {
            let bytes = frame(ProbeId { sequence, ..ID }, Some(sent_ns), 100);
            book.enter(captured(&bytes, 1000, None), false).unwrap();
        }
        assert_eq!(book.close().latency_ns, wanted);
    }
}

proptest! {
    #[test]
    fn the_sums_agree_with_what_was_sent(sequences in proptest::collection::vec(0u64..300, 1..200)) {
        let mut book = Book::new(spec(0, false));
        for (time, &sequence) in sequences.iter().enumerate() {
            let bytes = frame(ProbeId { sequence, ..ID }, None, 40);
            book.enter(captured(&bytes, time as u64, None), false).unwrap();
        }
        let different: BTreeSet<u64> = sequences.iter().copied().collect();
        let highest = *different.last().expect("one at least");
        let tally = book.close();
        prop_assert_eq!(tally.whole, different.len() as u64);
        prop_assert_eq!(tally.whole + tally.duplicates, sequences.len() as u64);
        prop_assert_eq!(tally.missing_count, highest + 1 - tally.whole);
    }

    #[test]
    fn hostile_frames_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), tag in any::<bool>()) {
        let mut book = Book::new(spec(0, true));
        let _ = book.enter(captured(&bytes, 0, tag.then_some((1, 2))), true);
    }
}
