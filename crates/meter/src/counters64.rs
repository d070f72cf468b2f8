//! What a link counted: `struct rtnl_link_stats64` (include/uapi/linux/if_link.h), 64-bit numbers in a fixed order.

use linerate_model::counters::LinkCounters;

use crate::error::{MeterError, Result};
use crate::growth::{grown64, or_note};
use crate::rtnetlink::long;

/// Decodes the structure. A kernel older than a trailing field does not send it; it then counts nothing there.
pub(crate) fn parse(bytes: &[u8]) -> Result<LinkCounters> {
    /// All up to `tx_window_errors` have been there since the structure was made.
    const OLDEST: usize = 23;
    if bytes.len() < 8 * OLDEST {
        return Err(MeterError::malformed("link counters", format!("{} bytes", bytes.len())));
    }
    let field = |index: usize| long(bytes, 8 * index).unwrap_or_default();
    Ok(LinkCounters {
        rx_packets: field(0),
        tx_packets: field(1),
        rx_bytes: field(2),
        tx_bytes: field(3),
        rx_errors: field(4),
        tx_errors: field(5),
        rx_dropped: field(6),
        tx_dropped: field(7),
        multicast: field(8),
        collisions: field(9),
        rx_length_errors: field(10),
        rx_over_errors: field(11),
        rx_crc_errors: field(12),
        rx_frame_errors: field(13),
        rx_fifo_errors: field(14),
        rx_missed_errors: field(15),
        tx_aborted_errors: field(16),
        tx_carrier_errors: field(17),
        tx_fifo_errors: field(18),
        tx_heartbeat_errors: field(19),
        tx_window_errors: field(20),
        // 21 and 22 count compressed packets of SLIP and PPP links.
        rx_nohandler: field(23),
    })
}

/// Growth of each counter.
pub(crate) fn difference(
    earlier: &LinkCounters,
    later: &LinkCounters,
    notes: &mut Vec<String>,
) -> LinkCounters {
    macro_rules! grown {
        ($($field:ident),+ $(,)?) => {
            LinkCounters {
                $($field: or_note(grown64(earlier.$field, later.$field), concat!("link counter ", stringify!($field)), notes)),+
            }
        };
    }
    grown!(
        rx_packets,
        tx_packets,
        rx_bytes,
        tx_bytes,
        rx_errors,
        tx_errors,
        rx_dropped,
        tx_dropped,
        multicast,
        collisions,
        rx_length_errors,
        rx_over_errors,
        rx_crc_errors,
        rx_frame_errors,
        rx_fifo_errors,
        rx_missed_errors,
        tx_aborted_errors,
        tx_carrier_errors,
        tx_fifo_errors,
        tx_heartbeat_errors,
        tx_window_errors,
        rx_nohandler,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_stand_in_the_kernels_order() {
        let bytes: Vec<u8> = (0..25u64).flat_map(u64::to_ne_bytes).collect();
        let counters = parse(&bytes).unwrap();
        assert_eq!((counters.tx_bytes, counters.tx_window_errors, counters.rx_nohandler), (3, 20, 23));
        assert_eq!(parse(&bytes[..23 * 8]).unwrap().rx_nohandler, 0);
        assert!(parse(&bytes[..22 * 8]).is_err());
    }

    #[test]
    fn a_reset_counter_is_noted() {
        let before = LinkCounters { rx_bytes: 10, tx_bytes: 5, ..LinkCounters::default() };
        let after = LinkCounters { rx_bytes: 3, tx_bytes: 9, ..LinkCounters::default() };
        let mut notes = Vec::new();
        let grown = difference(&before, &after, &mut notes);
        assert_eq!((grown.rx_bytes, grown.tx_bytes), (0, 4));
        assert_eq!(notes, ["link counter rx_bytes: stepped back within the window"]);
    }

    proptest! {
        #[test]
        fn hostile_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..220)) {
            let _ = parse(&bytes);
        }
    }
}
