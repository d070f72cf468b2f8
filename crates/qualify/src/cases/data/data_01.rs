//! DATA-01: TCP with every byte compared.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "DATA-01",
    title: "TCP with every byte compared",
    does: "1, 4 and 16 TCP connections with writes of 1 to 65000 bytes, both ways at once, over IPv4 and \
           IPv6, by write, writev, sendfile and zero copy.",
    holds: "No wrong byte, every connection comes to its end, less than 1 % sent again, no checksum error \
           counted.",
    skipped: "The links have no address of that IP version.",
    source: "NICDRV test01, ksft, LNST, NDISTest",
    privilege: Privilege::None,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
