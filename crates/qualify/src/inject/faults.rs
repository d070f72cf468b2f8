//! The faults, a line each.

use std::fmt;

use super::nic::Quirk;
use super::wire::{self, Change, Way};

/// A fault that can be injected.
pub struct Fault {
    /// As `--inject` takes it.
    pub name: &'static str,
    /// What goes wrong.
    pub does: &'static str,
    pub(super) act: Act,
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// How it is done.
pub(super) enum Act {
    /// Each so manieth frame is changed on the wire, one way or both.
    Wire(Option<Way>, u64, Change),
    /// The card does something wrongly.
    Card(Quirk),
    /// Frames are kept back.
    Delay,
}

/// Every fault.
pub static FAULTS: [Fault; 57] = [
    wire("drop", "each 20th frame is lost", None, 20, wire::drop_frame),
    wire("drop-tx", "each 20th frame that the dut sends is lost", TX, 20, wire::drop_frame),
    wire("drop-rx", "each 20th frame that the dut receives is lost", RX, 20, wire::drop_frame),
    wire("duplicate", "each 20th frame arrives twice", None, 20, wire::duplicate),
    wire("reorder", "each 20th frame goes behind the next", None, 20, wire::reorder),
    wire("truncate", "each 10th frame loses its last four bytes", None, 10, wire::truncate),
    wire("keep-fcs", "each 10th frame that the dut receives has four bytes more", RX, 10, wire::lengthen),
    wire("flip-bit", "each 10th frame has a wrong bit, its checksum left", None, 10, wire::flip_bit),
    wire(
        "flip-bit-mended",
        "each 10th frame has a wrong bit and a checksum that agrees",
        None,
        10,
        wire::flip_bit_mended,
    ),
    wire(
        "swap-words",
        "each 10th frame has two words swapped, which no checksum shows",
        None,
        10,
        wire::swap_words,
    ),
    wire(
        "stale-bytes",
        "each 10th frame ends as the one before, its checksum mended",
        None,
        10,
        wire::stale_bytes,
    ),
    wire("drop-lengths", "frames of 257 to 260 bytes are lost", None, 1, wire::drop_lengths),
    wire("drop-long", "frames above 1500 bytes are lost", None, 1, wire::drop_long),
    wire("drop-fragments", "IP fragments are lost", None, 1, wire::drop_fragments),
    wire("drop-v6", "IPv6 is lost", None, 1, wire::drop_v6),
    wire("drop-odd", "frames other than IP, ARP and bare probes are lost", None, 1, wire::drop_odd),
    wire("dirty-pad", "a byte of a shortest frame's end is wrong", None, 1, wire::dirty_pad),
    wire("mangle-tag", "the VLAN id of a tag is another", None, 1, wire::mangle_tag),
    wire("lose-priority", "priority and DEI of a tag are lost", None, 1, wire::lose_priority),
    wire("lose-tag-tx", "a tag that the dut sends is lost", TX, 1, wire::lose_tag),
    wire("strip-tag-twice", "a tag that the dut receives is lost", RX, 1, wire::lose_tag),
    wire("double-tag", "a tag is there twice", None, 1, wire::double_tag),
    card("tx-checksum-wrong", "checksums that the card fills are wrong", Quirk::WrongChecksum),
    card("tx-checksum-missing", "checksums are left for others to fill", Quirk::NoChecksum),
    card(
        "tx-checksum-over-padding",
        "checksums of short frames are summed over padding",
        Quirk::ChecksumOverPadding,
    ),
    card("tx-checksum-zero", "a UDP checksum of 0 goes out as none", Quirk::ZeroUdpChecksum),
    card("segment-size", "segments are a byte too short", Quirk::WrongSegmentSize),
    card("segment-lost", "the last segment is lost", Quirk::LostLastSegment),
    card("segment-lost-flags", "FIN and PSH are lost in segmentation", Quirk::LostFinPush),
    card("segment-flags-on-all", "FIN and PSH are on each segment", Quirk::FinPushOnAll),
    card("segment-cwr-on-all", "CWR is on each segment", Quirk::CwrOnAll),
    card("segment-id", "the IPv4 identification does not count on", Quirk::ConstantId),
    card("segment-sequence", "sequence numbers do not count on", Quirk::ConstantSequence),
    card("pad-dirty", "padding has bytes of the frame before", Quirk::DirtyPad),
    card(
        "rx-checksum-over-padding",
        "good frames with something in their padding are lost",
        Quirk::ReceiveSumOverPadding,
    ),
    card("rx-checksum-all-good", "each received checksum is called good", Quirk::CallsAllGood),
    card("leak-unicast", "foreign unicast frames are received", Quirk::LeaksForeignUnicast),
    card("leak-multicast", "multicast that nobody joined is received", Quirk::LeaksMulticast),
    card("miss-groups", "one multicast group of eight is not received", Quirk::MissesSomeGroups),
    card("ignore-allmulti", "all-multicast mode does nothing", Quirk::IgnoresAllMulticast),
    card("ignore-promisc", "promiscuous mode does nothing", Quirk::IgnoresPromiscuous),
    card("stay-promisc", "promiscuous mode never ends", Quirk::StaysPromiscuous),
    card("ignore-new-mac", "a changed address is not received, the old one is", Quirk::IgnoresNewMac),
    card("forget-multicast", "after down and up, groups are forgotten", Quirk::ForgetsGroups),
    card("forget-mac", "after down and up, the own address is forgotten", Quirk::ForgetsMac),
    card("deaf-after-down-up", "after down and up, nothing is received", Quirk::DeafAfterDown),
    card("deaf-after-giant", "after a frame above the MTU, nothing is received", Quirk::DeafAfterGiant),
    card("cut-giants", "giants are delivered cut", Quirk::CutsGiants),
    card("stuck-tx", "after 64 frames, nothing is sent any more", Quirk::StuckTx),
    card("merge-wrongly", "neighbouring segments are merged, whatever they are", Quirk::MergesWrongly),
    card("miscount", "each eighth received frame is counted twice", Quirk::CountsTwice),
    card("flap-carrier", "the carrier goes away for a moment each half second", Quirk::FlapsCarrier),
    wire("drop-half", "each second frame is lost", None, 2, wire::drop_frame),
    wire("reorder-many", "each third frame goes behind the next", None, 3, wire::reorder),
    wire("duplicate-many", "each third frame arrives twice", None, 3, wire::duplicate),
    wire("drop-all", "all frames are lost", None, 1, wire::drop_frame),
    Fault { name: "delay", does: "frames are kept back for 400 ms", act: Act::Delay },
];

const TX: Option<Way> = Some(Way::ToPeer);
const RX: Option<Way> = Some(Way::ToDut);

const fn wire(name: &'static str, does: &'static str, way: Option<Way>, every: u64, change: Change) -> Fault {
    Fault { name, does, act: Act::Wire(way, every, change) }
}

const fn card(name: &'static str, does: &'static str, quirk: Quirk) -> Fault {
    Fault { name, does, act: Act::Card(quirk) }
}

/// A name that is no fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no fault '{name}'; there are: {}", known())]
pub struct UnknownFault {
    /// The name.
    pub name: String,
}

fn known() -> String {
    FAULTS.iter().map(|fault| fault.name).collect::<Vec<_>>().join(", ")
}

/// The faults of a list with commas; `none`, or nothing, is a card without faults.
///
/// # Errors
/// A name that there is not.
pub fn parse_faults(text: &str) -> Result<Vec<&'static Fault>, UnknownFault> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty() && *name != "none");
    names
        .map(|name| {
            let found = FAULTS.iter().find(|fault| fault.name == name);
            found.ok_or_else(|| UnknownFault { name: name.to_owned() })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_and_lists_are_read() {
        let names: std::collections::BTreeSet<&str> = FAULTS.iter().map(|fault| fault.name).collect();
        assert_eq!(names.len(), FAULTS.len());
        assert_eq!(parse_faults("drop, reorder").unwrap().len(), 2);
        assert!(parse_faults("none").unwrap().is_empty());
        assert!(
            parse_faults("nonsense").unwrap_err().to_string().starts_with("there is no fault 'nonsense'")
        );
    }
}
