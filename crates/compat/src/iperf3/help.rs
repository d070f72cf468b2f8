//! The text of `-h`.

/// The options, explained.
pub(super) const HELP: &str = "\
Usage: iperf3 -s [options]
       iperf3 -c HOST [options]

Client and server:
  -p, --port N              TCP and UDP port (5201)
  -f, --format LETTER       rates in k, m, g, t (bits) or K, M, G, T (bytes)
  -i, --interval SECONDS    time between reports (1); 0 is none
  -I, --pidfile FILE        write the process id
  -F, --file FILE           TCP: send from FILE, or receive into it
  -A, --affinity N[,M]      run on CPU N; M is asked of the server
  -B, --bind ADDRESS[%DEV]  own address; --bind-dev DEV own device (client)
  -V, --verbose             more lines
  -J, --json                one JSON object
      --json-stream         a JSON line an event; --json-stream-full-output adds the object
      --logfile FILE        write there instead
      --forceflush          every line is written at once in any case
      --timestamps[=FORMAT] put the time before each line, as strftime has it
      --rcv-timeout MS      end when nothing has come for this long (120000)
      --snd-timeout MS      end when sent bytes stay unacknowledged (client)
      --cntl-ka[=IDLE/INTERVAL/COUNT]  keepalive of the control connection (client)
  -m, --mptcp               MPTCP
  -4, -6                    IPv4 only, IPv6 only
      --use-pkcs1-padding   as versions before 3.17 pad tokens
      --linerate-json FILE  add a record of each test to FILE
  -v, --version; -h, --help

Server:
  -s, --server
  -D, --daemon              in the background
  -1, --one-off             one test, then end
      --one-at-a-time       refuse clients during a test, as iperf3 does
      --max-clients N       most tests at once (128)
      --allow NET[,NET]     networks that may connect
      --allow-pinning       clients may choose this server's CPU
      --server-bitrate-limit RATE[/SECONDS]  end tests that move more, over an average of 5 s
      --server-max-duration SECONDS          refuse tests that are longer, or without end
      --idle-timeout SECONDS                 with -1: end if no client comes
      --rsa-private-key-path FILE, --authorized-users-path FILE   who may run tests
      --time-skew-threshold SECONDS          how old a token may be (10)

Client:
  -c, --client HOST[%DEV]
  -u, --udp                 UDP
      --connect-timeout MS  for the control connection
  -b, --bitrate RATE[/N]    bits a second of each stream, N blocks at a time (UDP 1M, TCP unlimited; 0 unlimited)
      --fq-rate RATE        have the kernel pace each stream
  -t, --time SECONDS        duration (10); 0 is without end
  -n, --bytes N             end after N bytes, over all streams of a direction
  -k, --blockcount N        end after N blocks
  -l, --length N            bytes a block (TCP 128K; UDP what fills a segment)
      --cport PORT          own port of the first stream; the others follow
  -P, --parallel N          streams a direction (1)
  -R, --reverse             the server sends
      --bidir               both send
  -w, --window N            socket buffers
  -C, --congestion NAME     TCP congestion control
  -M, --set-mss N           TCP maximum segment size
  -N, --no-delay            TCP_NODELAY
  -S, --tos N; --dscp N     type of service byte; DSCP by number or name
  -Z, --zerocopy            sendfile
      --skip-rx-copy        receivers leave payload in the kernel
      --gsro                UDP: merged datagrams on both ends; --gso, --gro only on senders, receivers
  -O, --omit SECONDS        time at the start that does not count
  -T, --title TEXT          before each line
      --extra-data TEXT     into the JSON output
      --get-server-output   show what the server printed
      --udp-counters-64bit  wide sequence numbers
      --repeating-payload   payload of digits
      --dont-fragment       IPv4 UDP datagrams are not cut
      --username USER, --rsa-public-key-path FILE    password from IPERF3_PASSWORD or asked for

Sizes (-n -k -l -w) take K, M, G, T of 1024; rates (-b --fq-rate --server-bitrate-limit) of 1000.
Not offered: --sctp -X --nstreams -L -d.
";
