//! Texts of `-h`.

/// Global options.
pub(crate) const GLOBAL: &str = "
Usage: netperf [global options] -- [test options]

Global options (pairs: 'v' is both, 'v,' the first, ',v' the second; * : 'v' alone is the first only):
    -4, -6            Force IPv4 or IPv6
    -B brandstr       Text behind the result line, with -P 0
    -b local,remote * Messages of a burst (with -w)
    -c, -C            Measure local, remote CPU
    -d, -n numcpu     Accepted, not used
    -D time[,units] * Interim results this often, in seconds
    -f G|M|K|g|m|k    Output unit (also B, b, x, u)
    -h, -V            This text; version
    -H name,family *  Where netserver is
    -i max,min        Most and least iterations
    -I level[,width]  Confidence level, 95 or 99, and width in percent of the mean (5)
    -j                Keep latency statistics
    -l testlen        > 0 seconds, < 0 bytes or transactions, 0 until interrupted (10)
    -L name,family *  Local address
    -p port,local *   Port of netserver, local control port
    -P 0|1            Whether headers are printed
    -r                Only the result must meet the confidence interval
    -s seconds        Wait between setup and data
    -S                SO_KEEPALIVE on the data connection
    -t testname       TCP_STREAM TCP_MAERTS TCP_SENDFILE TCP_MSS TCP_RR TCP_CRR TCP_CC UDP_STREAM UDP_RR OMNI
                      LOC_CPU REM_CPU UUID
    -T local,remote   Bind netperf, netserver to a CPU
    -v level          Verbosity: 0, 1, 2
    -w local,remote * Time from one burst to the next
    -W send,recv      Buffers in the ring
    -y, -Y local,remote  Socket priority; TOS
    -Z passphrase     Passphrase of netserver
    --linerate-json FILE  Add linerate's own record to FILE
";

/// Test options.
pub(crate) const TEST: &str = "
Usage: netperf [global options] -- [test options]

Test options:
    -b number         Extra requests outstanding
    -c                A connection for each transaction (OMNI)
    -d direction      xmit, recv, rr, or their bits 2 and 4 (OMNI)
    -D                TCP_NODELAY at both ends
    -e seconds        How long a UDP response may take
    -H, -L name,family  Target, source of the data
    -k, -o, -O [spec] Keyval, CSV, human output ('?' lists the names)
    -K local,remote   Congestion control
    -m local,remote   Send sizes
    -M remote,local   Receive sizes
    -n, -N            Connect the local (always), the remote UDP socket
    -p min,max        Local ports of TCP_CRR and TCP_CC
    -P local,remote   Data ports
    -r request,response  Sizes
    -R 0|1            Whether data may be routed
    -s, -S send,recv  Local, remote socket buffers
    -t stream|dgram, -T tcp|udp  Transport (OMNI)
    -u uuid           Text for UUID
    -4, -6            Family of the data
";
