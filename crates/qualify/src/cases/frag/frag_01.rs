//! FRAG-01: fragments and ping sizes.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "FRAG-01",
    title: "fragments and ping sizes",
    does: "Pings of every payload up to 3000 bytes and many up to 65507, both ways, IPv4 and IPv6; UDP of \
           the same sizes; fragments in reverse and overlapping.",
    holds: "Every echo is equal, none is lost, 65508 is refused.",
    skipped: "",
    source: "NICDRV test02",
    privilege: Privilege::Raw,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
