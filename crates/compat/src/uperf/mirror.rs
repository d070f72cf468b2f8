//! What a slave gets of a group: the other half of everything.

use crate::uperf::workorder::{Flowop, Group, Kind, Transaction};

/// Read size of a slave that is sent files.
const SENDFILE_READ: u32 = 65536;

/// The group as the slave on `host` executes it.
pub fn mirror(group: &Group, host: &str) -> Group {
    let transactions = group.transactions.iter().map(|transaction| Transaction {
        flowops: transaction.flowops.iter().map(|f| mirror_flowop(f, host)).collect(),
        ..transaction.clone()
    });
    Group { transactions: transactions.collect(), ..group.clone() }
}

fn mirror_flowop(flowop: &Flowop, host: &str) -> Flowop {
    let mut far = flowop.clone();
    far.kind = match flowop.kind {
        Kind::Read => Kind::Write,
        Kind::Write => Kind::Read,
        Kind::Send => Kind::Recv,
        Kind::Recv => Kind::Send,
        Kind::Connect => Kind::Accept,
        Kind::Accept => Kind::Connect,
        Kind::Sendfile | Kind::Sendfilev => Kind::Read,
        same @ (Kind::Disconnect | Kind::Nop | Kind::Think) => same,
    };
    if matches!(flowop.kind, Kind::Sendfile | Kind::Sendfilev) {
        far.size = SENDFILE_READ;
    }
    if flowop.rsize > flowop.size {
        if flowop.count > 1 {
            far.count = (u64::from(flowop.size) * flowop.count / u64::from(flowop.rsize)).max(1);
        }
        far.size = flowop.rsize;
    }
    far.sctp.streams.swap(0, 1);
    if !flowop.remote_host.is_empty() && flowop.remote_host != host {
        far.kind = Kind::Nop;
    }
    far
}

#[cfg(test)]
mod tests {
    use super::*;

    fn far(flowop: Flowop) -> Flowop {
        mirror_flowop(&flowop, "a")
    }

    #[test]
    fn every_kind_has_its_other_half() {
        for (near, there) in [
            (Kind::Read, Kind::Write),
            (Kind::Write, Kind::Read),
            (Kind::Send, Kind::Recv),
            (Kind::Recv, Kind::Send),
            (Kind::Connect, Kind::Accept),
            (Kind::Accept, Kind::Connect),
            (Kind::Sendfile, Kind::Read),
            (Kind::Disconnect, Kind::Disconnect),
            (Kind::Nop, Kind::Nop),
            (Kind::Think, Kind::Think),
        ] {
            assert_eq!(far(Flowop { kind: near, ..Flowop::default() }).kind, there);
        }
        assert_eq!(far(Flowop { kind: Kind::Sendfile, size: 8192, ..Flowop::default() }).size, 65536);
    }

    #[test]
    fn a_larger_far_size_scales_the_count() {
        let write = Flowop { kind: Kind::Write, size: 1024, rsize: 8192, count: 80, ..Flowop::default() };
        assert_eq!((far(write.clone()).size, far(write.clone()).count), (8192, 10));
        assert_eq!(far(Flowop { count: 1, ..write.clone() }).count, 1);
        assert_eq!(far(Flowop { rsize: 10, ..write }).size, 1024);
    }

    #[test]
    fn flowops_of_another_host_do_nothing() {
        let write = Flowop { kind: Kind::Write, size: 1, remote_host: "b".into(), ..Flowop::default() };
        assert_eq!(far(write.clone()).kind, Kind::Nop);
        assert_eq!(far(Flowop { remote_host: "a".into(), ..write.clone() }).kind, Kind::Read);
        assert_eq!(far(Flowop { remote_host: String::new(), ..write }).kind, Kind::Read);
    }
}
