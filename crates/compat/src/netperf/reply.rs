//! What a server answers: first where to connect and what its sockets got, at the end what it counted.

use super::request::Layout;
use super::wire::Message;

/// Method code of CPU time from `/proc/stat`.
pub const METHOD_PROC_STAT: i32 = 8;

/// The server is ready for data.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Response {
    /// SO_RCVBUF as read back.
    pub receive_buffer: i32,
    /// Bytes of the server's receive calls.
    pub receive_size: i32,
    /// Receive buffers in the ring.
    pub receive_width: i32,
    /// SO_SNDBUF as read back.
    pub send_buffer: i32,
    /// Bytes of the server's send calls.
    pub send_size: i32,
    /// Send buffers in the ring.
    pub send_width: i32,
    /// Whether the server set TCP_NODELAY.
    pub nodelay: bool,
    /// Whether it measures its CPUs.
    pub measure_cpu: bool,
    /// 100 where it measures on Linux.
    pub cpu_rate: f32,
    /// Data port that the client must use.
    pub port: u16,
    /// Pacing taken: messages of a burst, microseconds.
    pub interval: [u32; 2],
    /// Resulting SO_PRIORITY; -1 untouched, -2 refused.
    pub priority: i32,
    /// Resulting TOS; -1 untouched, -2 refused.
    pub tos: i32,
}

/// What the server counted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Results {
    /// Bytes received.
    pub received_bytes: u64,
    /// Receive calls that returned data; datagrams.
    pub receive_calls: u32,
    /// SO_RCVBUF at the end.
    pub receive_buffer: i32,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Send calls.
    pub send_calls: u32,
    /// SO_SNDBUF at the end.
    pub send_buffer: i32,
    /// Transactions.
    pub transactions: u32,
    /// Seconds from first activity to last.
    pub elapsed: f32,
    /// What the CPUs did, if that was asked for.
    pub cpu: Option<CpuShares>,
    /// CPUs online; 0 where not measured.
    pub cpus: i32,
    /// TCP segments sent again; -1 where not known.
    pub retransmits: i32,
    /// Congestion control in use.
    pub congestion: String,
}

/// What a machine's CPUs did, percent of all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuShares {
    /// Not idle.
    pub util: f32,
    /// In user space.
    pub user: f32,
    /// In the kernel for a process.
    pub system: f32,
    /// Waiting for a disk.
    pub iowait: f32,
    /// In hard interrupts.
    pub irq: f32,
    /// In soft interrupts.
    pub softirq: f32,
    /// Number of the busiest CPU.
    pub peak_id: i32,
    /// Its util.
    pub peak: f32,
}

const MEASURED: u32 = 8;

impl Response {
    /// The message for it.
    pub fn encode(&self, layout: Layout) -> Message {
        let mut m = Message::new(layout.kind() + 1, 0);
        match layout {
            Layout::Omni => {
                m.put_i32(8, self.receive_buffer);
                m.put_i32(12, self.receive_size);
                m.put_i32(16, self.receive_width);
                m.put_i32(20, self.send_buffer);
                m.put_i32(24, self.send_size);
                m.put_i32(28, self.send_width);
                m.put_u32(32, u32::from(self.nodelay) | if self.measure_cpu { MEASURED } else { 0 });
                m.put_f32(36, self.cpu_rate);
                m.put_u32(52, self.port.into());
                m.put_u32(56, self.interval[0]);
                m.put_u32(60, self.interval[1]);
                m.put_i32(72, self.priority);
                m.put_i32(76, self.tos);
            }
            Layout::TcpStream | Layout::TcpMaerts => {
                m.put_i32(8, self.receive_buffer);
                let size = if layout == Layout::TcpStream { self.receive_size } else { self.send_size };
                m.put_i32(12, size);
                m.put_u32(16, self.nodelay.into());
                m.put_u32(20, self.measure_cpu.into());
                m.put_i32(28, self.send_buffer);
                m.put_u32(32, self.port.into());
                m.put_f32(36, self.cpu_rate);
            }
            Layout::UdpStream => {
                m.put_i32(8, self.receive_buffer);
                m.put_i32(12, self.send_buffer);
                m.put_u32(16, self.measure_cpu.into());
                m.put_u32(24, self.port.into());
                m.put_f32(28, self.cpu_rate);
            }
            Layout::TcpRr | Layout::UdpRr | Layout::TcpCrr | Layout::TcpCc => {
                m.put_i32(8, self.receive_buffer);
                m.put_u32(12, self.nodelay.into());
                m.put_u32(16, self.measure_cpu.into());
                m.put_i32(24, self.send_buffer);
                m.put_u32(28, self.port.into());
                m.put_f32(32, self.cpu_rate);
            }
        }
        m
    }

    /// Reads one.
    pub fn decode(layout: Layout, m: &Message) -> Self {
        let untouched = Self { priority: -1, tos: -1, ..Self::default() };
        match layout {
            Layout::Omni => Self {
                receive_buffer: m.i32(8),
                receive_size: m.i32(12),
                receive_width: m.i32(16),
                send_buffer: m.i32(20),
                send_size: m.i32(24),
                send_width: m.i32(28),
                nodelay: m.u32(32) & 1 != 0,
                measure_cpu: m.u32(32) & MEASURED != 0,
                cpu_rate: m.f32(36),
                port: m.u32(52) as u16,
                interval: [m.u32(56), m.u32(60)],
                priority: m.i32(72),
                tos: m.i32(76),
            },
            Layout::TcpStream | Layout::TcpMaerts => {
                let size = m.i32(12);
                let receives = layout == Layout::TcpStream;
                Self {
                    receive_buffer: m.i32(8),
                    receive_size: if receives { size } else { -1 },
                    send_size: if receives { -1 } else { size },
                    nodelay: m.u32(16) != 0,
                    measure_cpu: m.u32(20) != 0,
                    send_buffer: m.i32(28),
                    port: m.u32(32) as u16,
                    cpu_rate: m.f32(36),
                    ..untouched
                }
            }
            Layout::UdpStream => Self {
                receive_buffer: m.i32(8),
                send_buffer: m.i32(12),
                measure_cpu: m.u32(16) != 0,
                port: m.u32(24) as u16,
                cpu_rate: m.f32(28),
                ..untouched
            },
            Layout::TcpRr | Layout::UdpRr | Layout::TcpCrr | Layout::TcpCc => Self {
                receive_buffer: m.i32(8),
                nodelay: m.u32(12) != 0,
                measure_cpu: m.u32(16) != 0,
                send_buffer: m.i32(24),
                port: m.u32(28) as u16,
                cpu_rate: m.f32(32),
                ..untouched
            },
        }
    }
}

impl Results {
    /// The message for it. As netserver does, its type word is the response's with its bytes reversed, except for classic
    /// UDP_STREAM.
    pub fn encode(&self, layout: Layout) -> Message {
        let mut m = Message::new(layout.kind() + 1, 0);
        let util = self.cpu.map_or(-1.0, |cpu| cpu.util);
        let method = if self.cpu.is_some() { METHOD_PROC_STAT } else { 0 };
        match layout {
            Layout::Omni => self.encode_omni(&mut m, method),
            Layout::TcpStream | Layout::TcpMaerts => {
                let receives = layout == Layout::TcpStream;
                let (bytes, calls) = if receives {
                    (self.received_bytes, self.receive_calls)
                } else {
                    (self.sent_bytes, self.send_calls)
                };
                m.put_f64(8, bytes as f64);
                m.put_u32(16, calls);
                m.put_f32(20, self.elapsed);
                m.put_f32(24, util);
                m.put_i32(32, method);
                m.put_i32(36, self.cpus);
            }
            Layout::UdpStream => {
                m = Message::new(layout.kind() + 2, 0);
                m.put_u32(8, self.receive_calls);
                m.put_u32(12, self.received_bytes as u32);
                m.put_f32(16, self.elapsed);
                m.put_f32(20, util);
                m.put_i32(24, method);
                m.put_i32(28, self.cpus);
                return m;
            }
            Layout::TcpRr | Layout::UdpRr | Layout::TcpCrr | Layout::TcpCc => {
                m.put_u32(8, self.received_bytes.wrapping_add(self.sent_bytes) as u32);
                m.put_u32(16, self.transactions);
                m.put_f32(20, self.elapsed);
                m.put_f32(24, util);
                m.put_i32(32, method);
                m.put_i32(36, self.cpus);
            }
        }
        m.reverse_kind();
        m
    }

    fn encode_omni(&self, m: &mut Message, method: i32) {
        m.put_u64(8, self.received_bytes);
        m.put_u32(16, self.receive_calls);
        m.put_i32(20, self.receive_buffer);
        m.put_u64(24, self.sent_bytes);
        m.put_u32(32, self.send_calls);
        m.put_i32(36, self.send_buffer);
        m.put_u32(44, self.transactions);
        m.put_f32(48, self.elapsed);
        if let Some(cpu) = self.cpu {
            let shares = [cpu.util, cpu.user, cpu.system, cpu.iowait, cpu.irq, cpu.softirq];
            for (index, share) in shares.into_iter().enumerate() {
                m.put_f32(52 + 4 * index, share);
            }
            m.put_i32(88, cpu.peak_id);
            m.put_f32(92, cpu.peak);
        }
        m.put_i32(80, method);
        m.put_i32(84, self.cpus);
        m.put_i32(112, self.retransmits);
        m.put_text(276, 16, &self.congestion);
    }

    /// Reads one. `cpu` is given wherever a method is named; a server that was not asked may leave stale bytes there.
    pub fn decode(layout: Layout, m: &Message) -> Self {
        let unknown = Self { retransmits: -1, receive_buffer: -1, send_buffer: -1, ..Self::default() };
        let only_util = |at| CpuShares { util: m.f32(at), peak_id: -1, ..CpuShares::default() };
        match layout {
            Layout::Omni => Self {
                received_bytes: m.u64(8),
                receive_calls: m.u32(16),
                receive_buffer: m.i32(20),
                sent_bytes: m.u64(24),
                send_calls: m.u32(32),
                send_buffer: m.i32(36),
                transactions: m.u32(44),
                elapsed: m.f32(48),
                cpu: (m.i32(80) != 0).then(|| CpuShares {
                    util: m.f32(52),
                    user: m.f32(56),
                    system: m.f32(60),
                    iowait: m.f32(64),
                    irq: m.f32(68),
                    softirq: m.f32(72),
                    peak_id: m.i32(88),
                    peak: m.f32(92),
                }),
                cpus: m.i32(84),
                retransmits: m.i32(112),
                congestion: m.text(276, 16),
            },
            Layout::TcpStream | Layout::TcpMaerts => {
                let bytes = m.f64(8).max(0.0) as u64;
                let receives = layout == Layout::TcpStream;
                Self {
                    received_bytes: if receives { bytes } else { 0 },
                    receive_calls: if receives { m.u32(16) } else { 0 },
                    sent_bytes: if receives { 0 } else { bytes },
                    send_calls: if receives { 0 } else { m.u32(16) },
                    elapsed: m.f32(20),
                    cpu: Some(only_util(24)),
                    cpus: m.i32(36),
                    ..unknown
                }
            }
            Layout::UdpStream => Self {
                receive_calls: m.u32(8),
                received_bytes: m.u32(12).into(),
                elapsed: m.f32(16),
                cpu: Some(only_util(20)),
                cpus: m.i32(28),
                ..unknown
            },
            Layout::TcpRr | Layout::UdpRr | Layout::TcpCrr | Layout::TcpCc => Self {
                received_bytes: m.u32(8).into(),
                transactions: m.u32(16),
                elapsed: m.f32(20),
                cpu: Some(only_util(24)),
                cpus: m.i32(36),
                ..unknown
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_go_there_and_back() {
        let response = Response {
            receive_buffer: 131_072,
            send_buffer: 16_384,
            nodelay: true,
            measure_cpu: true,
            cpu_rate: 100.0,
            port: 40_000,
            priority: -1,
            tos: -1,
            ..Response::default()
        };
        for layout in Layout::ALL {
            let mut back = Response::decode(layout, &response.encode(layout));
            // Classic records have no room for these.
            back.nodelay = true;
            back.send_size = back.send_size.max(0);
            back.receive_size = back.receive_size.max(0);
            assert_eq!(back, response, "{layout:?}");
        }
    }

    #[test]
    fn results_go_there_and_back() {
        let cpu =
            CpuShares { util: 40.0, user: 1.0, system: 2.0, peak: 80.0, peak_id: 1, ..CpuShares::default() };
        let results = Results {
            received_bytes: 5 << 32,
            receive_calls: 9,
            receive_buffer: 1,
            sent_bytes: 7,
            send_calls: 3,
            send_buffer: 2,
            transactions: 4,
            elapsed: 1.5,
            cpu: Some(cpu),
            cpus: 2,
            retransmits: 6,
            congestion: "cubic".into(),
        };
        let message = results.encode(Layout::Omni);
        assert_eq!(message.bytes()[..8], [0x62, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Results::decode(Layout::Omni, &message), results);
        let stream = Results::decode(Layout::TcpStream, &results.encode(Layout::TcpStream));
        assert_eq!((stream.received_bytes, stream.receive_calls, stream.cpus), (5 << 32, 9, 2));
        assert_eq!(results.encode(Layout::UdpStream).kind(), 18);
        assert_eq!(results.encode(Layout::TcpCc).bytes()[..4], [0x2d, 1, 0, 0]);
    }

    #[test]
    fn unmeasured_cpus_are_none_in_the_omni_record() {
        let results = Results { cpu: None, ..Results::default() };
        assert_eq!(Results::decode(Layout::Omni, &results.encode(Layout::Omni)).cpu, None);
    }
}
