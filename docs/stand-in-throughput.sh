#!/bin/bash
# Stand-ins beside the originals: ratios of interleaved runs between two namespaces.
# Usage: stand-in-throughput.sh LINERATE [REPEATS [SECONDS]]   (as root, with iperf3 and netperf installed)
set -eu
LINERATE=$1; REPEATS=${2:-5}; SECONDS_EACH=${3:-1}
A=lr-si-a-$$; B=lr-si-b-$$; PIDS=()
cleanup() { for pid in "${PIDS[@]}"; do kill "$pid" 2>/dev/null || true; done; ip netns del $A 2>/dev/null || true; ip netns del $B 2>/dev/null || true; }
trap cleanup EXIT
ip netns add $A; ip netns add $B
ip link add lr-si0 netns $A type veth peer name lr-si1 netns $B
for ns in $A $B; do ip -n $ns link set lo up; done
ip -n $A addr add 198.18.9.1/24 dev lr-si0; ip -n $A link set lr-si0 up
ip -n $B addr add 198.18.9.2/24 dev lr-si1; ip -n $B link set lr-si1 up
serve() { ip netns exec $B "$@" >/dev/null 2>&1 & PIDS+=($!); }
serve iperf3 -s -p 5201; serve "$LINERATE" iperf3 -s -p 5301
serve netserver -D -p 12865; serve "$LINERATE" netserver -D -p 12965
sleep 1
iperf() { # client port options
  ip netns exec $A $1 -c 198.18.9.2 -p $2 -t $SECONDS_EACH -J ${3:-} |
    python3 -c 'import json,sys; e=json.load(sys.stdin)["end"]; print((e.get("sum_received") or e["sum"])["bits_per_second"]/1e6 if "sum_received" in e else e["sum"]["bits_per_second"]*(1-e["sum"]["lost_percent"]/100)/1e6)'
}
netp() { # client port test own
  ip netns exec $A $1 -H 198.18.9.2 -p $2 -l $SECONDS_EACH -t $3 -P 0 -- ${4:-} -k THROUGHPUT | sed -n 's/^THROUGHPUT=//p'
}
one() { # test client port
  case $1 in
    "iperf3 TCP") iperf "$2" $3 ;;
    "iperf3 UDP") iperf "$2" $3 "-u -b 0 -l 1400" ;;
    "netperf TCP_STREAM") netp "$2" $3 TCP_STREAM ;;
    "netperf TCP_RR") netp "$2" $3 TCP_RR ;;
    "netperf UDP_STREAM") netp "$2" $3 UDP_STREAM "-m 1400 -R 1" ;;
  esac
}
for test in "iperf3 TCP" "iperf3 UDP" "netperf TCP_STREAM" "netperf TCP_RR" "netperf UDP_STREAM"; do
  tool=${test%% *}
  if [ "$tool" = iperf3 ]; then theirs=5201; ours=5301; else theirs=12865; ours=12965; fi
  lines=""
  for _ in $(seq "$REPEATS"); do
    base=$(one "$test" "$tool" $theirs)
    client=$(one "$test" "$LINERATE $tool" $theirs)
    server=$(one "$test" "$tool" $ours)
    lines+="$base $client $server"$'\n'
  done
  printf '%s' "$lines" | python3 -c '
import statistics as s, sys
rows=[[float(x) for x in l.split()] for l in sys.stdin if len(l.split())==3]
m=lambda f: s.median(f(r) for r in rows)
print("| %s | %.0f | %.2f | %.2f |" % (sys.argv[1], m(lambda r:r[0]), m(lambda r:r[1]/r[0]), m(lambda r:r[2]/r[0])))' "$test"
done
