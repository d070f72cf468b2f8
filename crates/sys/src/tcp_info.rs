//! The kernel's state of one TCP connection (`TCP_INFO`, tcp(7), `include/uapi/linux/tcp.h`).

use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd};

use libc::tcp_info as Raw;

use crate::error::{Result, SysError};

/// Offset of the byte that holds `tcpi_delivery_rate_app_limited` in bit 0, which libc's struct leaves as padding.
const APP_LIMITED_BYTE: usize = 7;

/// Room for fields that kernels newer than libc may add.
const CAPACITY: usize = size_of::<Raw>() + 128;

/// State of one TCP connection at one instant. Counters run from the connection's start.
///
/// A field is `None` where the running kernel is too old to report it; the rest exist since Linux 2.6.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// State as in `enum tcp_state`: 1 is ESTABLISHED.
    pub state: u8,
    /// Congestion avoidance state: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
    pub ca_state: u8,
    /// Options negotiated, bits of `TCPI_OPT_*` (1 timestamps, 2 SACK, 4 window scaling, 8 ECN).
    pub options: u8,
    /// Window scale we send with, bits.
    pub snd_wscale: u8,
    /// Window scale we receive with, bits.
    pub rcv_wscale: u8,
    /// Whether the last delivery rate sample was limited by the sender having nothing to send.
    pub app_limited: bool,
    /// Retransmission timeout, microseconds.
    pub rto_us: u32,
    /// Delayed acknowledgement timeout, microseconds.
    pub ato_us: u32,
    /// Segment size used to send, bytes.
    pub snd_mss: u32,
    /// Segment size estimated of what is received, bytes.
    pub rcv_mss: u32,
    /// Segment size advertised to the peer, bytes.
    pub advmss: u32,
    /// Path MTU, bytes.
    pub pmtu: u32,
    /// Segments in flight.
    pub unacked: u32,
    /// Segments marked lost now.
    pub lost: u32,
    /// Segments retransmitted and not acknowledged now.
    pub retrans: u32,
    /// Segments retransmitted since the start.
    pub total_retrans: u32,
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: u32,
    /// Mean deviation of the round-trip time, microseconds.
    pub rttvar_us: u32,
    /// Round-trip time as the receiver estimates it, microseconds.
    pub rcv_rtt_us: u32,
    /// Slow start threshold, segments.
    pub snd_ssthresh: u32,
    /// Congestion window, segments.
    pub snd_cwnd: u32,
    /// Reordering tolerated, segments.
    pub reordering: u32,
    /// Space the receiver aims at for its buffer, bytes.
    pub rcv_space: u32,
    /// Rate the kernel paces at, bytes a second; `u64::MAX` is unbounded.
    pub pacing_rate: Option<u64>,
    /// Bound of the pacing rate, bytes a second; `u64::MAX` is unbounded.
    pub max_pacing_rate: Option<u64>,
    /// Bytes of ours that the peer has acknowledged.
    pub bytes_acked: Option<u64>,
    /// Bytes received in order.
    pub bytes_received: Option<u64>,
    /// Segments sent, with those that carry no data.
    pub segs_out: Option<u32>,
    /// Segments received, with those that carry no data.
    pub segs_in: Option<u32>,
    /// Bytes written that have not been sent for the first time.
    pub notsent_bytes: Option<u32>,
    /// Lowest round-trip time seen, microseconds.
    pub min_rtt_us: Option<u32>,
    /// Segments received with data.
    pub data_segs_in: Option<u32>,
    /// Segments sent with data.
    pub data_segs_out: Option<u32>,
    /// Latest delivery rate sample, bytes a second.
    pub delivery_rate: Option<u64>,
    /// Time with data in flight, microseconds.
    pub busy_time_us: Option<u64>,
    /// Time held back by the peer's receive window, microseconds.
    pub rwnd_limited_us: Option<u64>,
    /// Time held back by our send buffer, microseconds.
    pub sndbuf_limited_us: Option<u64>,
    /// Segments delivered, retransmits included.
    pub delivered: Option<u32>,
    /// Segments delivered with a congestion mark.
    pub delivered_ce: Option<u32>,
    /// Bytes sent with data, retransmits included.
    pub bytes_sent: Option<u64>,
    /// Bytes retransmitted.
    pub bytes_retrans: Option<u64>,
    /// Duplicate SACKs received.
    pub dsack_dups: Option<u32>,
    /// Times that reordering was seen.
    pub reord_seen: Option<u32>,
    /// Segments received out of order.
    pub rcv_ooopack: Option<u32>,
    /// Window advertised by the peer, bytes.
    pub snd_wnd: Option<u32>,
    /// Window we advertise, bytes (Linux 6.2).
    pub rcv_wnd: Option<u32>,
    /// Times the flow label or source hash was changed (Linux 6.2).
    pub rehash: Option<u32>,
    /// Retransmission timeouts (Linux 6.7).
    pub total_rto: Option<u16>,
    /// Recoveries after a retransmission timeout (Linux 6.7).
    pub total_rto_recoveries: Option<u16>,
    /// Time spent in timeout recovery, milliseconds (Linux 6.7).
    pub total_rto_time_ms: Option<u32>,
}

impl TcpInfo {
    /// Reads the state of the connection behind `socket`. Does not disturb it.
    pub fn of(socket: impl AsFd) -> Result<Self> {
        let fd = socket.as_fd().as_raw_fd();
        let mut raw = [0u8; CAPACITY];
        let mut length = raw.len() as libc::socklen_t;
        // SAFETY: `raw` is writable for `length` bytes and both outlive the call.
        let code = unsafe {
            libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, raw.as_mut_ptr().cast(), &raw mut length)
        };
        if code < 0 {
            return Err(SysError::last("read TCP_INFO", format!("socket {fd}")));
        }
        Ok(Self::decode(&raw[..(length as usize).min(CAPACITY)]))
    }

    /// Decodes the bytes that the kernel filled; what lies past their end is absent.
    fn decode(raw: &[u8]) -> Self {
        macro_rules! u32_at {
            ($field:ident) => {
                field(raw, offset_of!(Raw, $field)).map(u32::from_ne_bytes)
            };
        }
        macro_rules! u64_at {
            ($field:ident) => {
                field(raw, offset_of!(Raw, $field)).map(u64::from_ne_bytes)
            };
        }
        macro_rules! u16_at {
            ($field:ident) => {
                field(raw, offset_of!(Raw, $field)).map(u16::from_ne_bytes)
            };
        }
        let byte = |offset: usize| raw.get(offset).copied().unwrap_or_default();
        let scales = byte(offset_of!(Raw, tcpi_snd_rcv_wscale));
        // C bitfields fill a byte from its low end on little-endian targets, from its high end on big-endian ones.
        let (snd_wscale, rcv_wscale, app_limited) = if cfg!(target_endian = "little") {
            (scales & 15, scales >> 4, byte(APP_LIMITED_BYTE) & 1 != 0)
        } else {
            (scales >> 4, scales & 15, byte(APP_LIMITED_BYTE) & 0x80 != 0)
        };
        Self {
            state: byte(offset_of!(Raw, tcpi_state)),
            ca_state: byte(offset_of!(Raw, tcpi_ca_state)),
            options: byte(offset_of!(Raw, tcpi_options)),
            snd_wscale,
            rcv_wscale,
            app_limited,
            rto_us: u32_at!(tcpi_rto).unwrap_or_default(),
            ato_us: u32_at!(tcpi_ato).unwrap_or_default(),
            snd_mss: u32_at!(tcpi_snd_mss).unwrap_or_default(),
            rcv_mss: u32_at!(tcpi_rcv_mss).unwrap_or_default(),
            advmss: u32_at!(tcpi_advmss).unwrap_or_default(),
            pmtu: u32_at!(tcpi_pmtu).unwrap_or_default(),
            unacked: u32_at!(tcpi_unacked).unwrap_or_default(),
            lost: u32_at!(tcpi_lost).unwrap_or_default(),
            retrans: u32_at!(tcpi_retrans).unwrap_or_default(),
            total_retrans: u32_at!(tcpi_total_retrans).unwrap_or_default(),
            rtt_us: u32_at!(tcpi_rtt).unwrap_or_default(),
            rttvar_us: u32_at!(tcpi_rttvar).unwrap_or_default(),
            rcv_rtt_us: u32_at!(tcpi_rcv_rtt).unwrap_or_default(),
            snd_ssthresh: u32_at!(tcpi_snd_ssthresh).unwrap_or_default(),
            snd_cwnd: u32_at!(tcpi_snd_cwnd).unwrap_or_default(),
            reordering: u32_at!(tcpi_reordering).unwrap_or_default(),
            rcv_space: u32_at!(tcpi_rcv_space).unwrap_or_default(),
            pacing_rate: u64_at!(tcpi_pacing_rate),
            max_pacing_rate: u64_at!(tcpi_max_pacing_rate),
            bytes_acked: u64_at!(tcpi_bytes_acked),
            bytes_received: u64_at!(tcpi_bytes_received),
            segs_out: u32_at!(tcpi_segs_out),
            segs_in: u32_at!(tcpi_segs_in),
            notsent_bytes: u32_at!(tcpi_notsent_bytes),
            min_rtt_us: u32_at!(tcpi_min_rtt),
            data_segs_in: u32_at!(tcpi_data_segs_in),
            data_segs_out: u32_at!(tcpi_data_segs_out),
            delivery_rate: u64_at!(tcpi_delivery_rate),
            busy_time_us: u64_at!(tcpi_busy_time),
            rwnd_limited_us: u64_at!(tcpi_rwnd_limited),
            sndbuf_limited_us: u64_at!(tcpi_sndbuf_limited),
            delivered: u32_at!(tcpi_delivered),
            delivered_ce: u32_at!(tcpi_delivered_ce),
            bytes_sent: u64_at!(tcpi_bytes_sent),
            bytes_retrans: u64_at!(tcpi_bytes_retrans),
            dsack_dups: u32_at!(tcpi_dsack_dups),
            reord_seen: u32_at!(tcpi_reord_seen),
            rcv_ooopack: u32_at!(tcpi_rcv_ooopack),
            snd_wnd: u32_at!(tcpi_snd_wnd),
            rcv_wnd: u32_at!(tcpi_rcv_wnd),
            rehash: u32_at!(tcpi_rehash),
            total_rto: u16_at!(tcpi_total_rto),
            total_rto_recoveries: u16_at!(tcpi_total_rto_recoveries),
            total_rto_time_ms: u32_at!(tcpi_total_rto_time),
        }
    }
}

fn field<const N: usize>(raw: &[u8], offset: usize) -> Option<[u8; N]> {
    raw.get(offset..offset + N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn counts_what_a_connection_moved() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&[1; 5000]).unwrap();
        server.read_exact(&mut [0; 5000]).unwrap();
        server.write_all(b"!").unwrap();
        client.read_exact(&mut [0; 1]).unwrap();

        let sender = TcpInfo::of(&client).unwrap();
        let receiver = TcpInfo::of(&server).unwrap();
        assert_eq!(sender.state, 1);
        assert_eq!(receiver.bytes_received, Some(5000));
        assert_eq!(sender.bytes_sent, Some(5000));
        assert_eq!(sender.bytes_retrans, Some(0));
        assert_eq!(sender.total_retrans, 0);
        assert!(sender.bytes_acked >= Some(5000));
        assert!(sender.snd_cwnd > 0 && sender.snd_mss > 0 && sender.pmtu > 0);
        assert!(sender.rtt_us > 0 && sender.min_rtt_us.is_some());
        assert!(sender.delivery_rate > Some(0));
        assert!(sender.busy_time_us.is_some() && sender.snd_wnd > Some(0));
    }

    #[test]
    fn an_old_kernel_leaves_fields_absent() {
        let short = vec![0xffu8; offset_of!(Raw, tcpi_pacing_rate)];
        let info = TcpInfo::decode(&short);
        assert_eq!(info.total_retrans, u32::MAX);
        assert_eq!(info.pacing_rate, None);
        assert_eq!(info.total_rto, None);
        assert_eq!(TcpInfo::decode(&[]), TcpInfo::default());
    }

    #[test]
    fn a_udp_socket_is_refused() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(TcpInfo::of(&socket).unwrap_err().to_string().starts_with("read TCP_INFO on socket"));
    }
}
