#!/usr/bin/env bash
# Prints doc/benchmarks.md, measured anew: beanpole beside Debian's beanstalkd.
#
#   doc/benchmarks.sh BEANPOLE
#
# ROUNDS (5) and DURATION (3s) say how often and how long each load is run.
set -euo pipefail

beanpole=$(realpath "${1:?usage: $0 BEANPOLE}")
rounds=${ROUNDS:-5}
duration=${DURATION:-3s}
here=$(cd "$(dirname "$0")" && pwd)

bench() { "$beanpole" bench --rounds "$rounds" "$@"; }

# measured runs one load on a server with a journal of the given segment size,
# and tells how many records cleaning has moved meanwhile.
measured() {
	local size=$1 dir port=21399 pid
	dir=$(mktemp -d)
	"$beanpole" -p $port -b "$dir" -f 50 -s "$size" 2>/dev/null &
	pid=$!
	sleep 1
	"$beanpole" bench --addr 127.0.0.1:$port --mix put-delete --connections 8 --backlog 200000 --duration "$duration"
	printf 'stats\r\nquit\r\n' | timeout 5 bash -c "exec 3<>/dev/tcp/127.0.0.1/$port; cat >&3; cat <&3" | grep -a records-
	kill $pid
	wait $pid || true
	rm -rf "$dir"
}

sed '/^<!-- figures -->/,$d' "$here/benchmarks.md"
cat <<EOF
<!-- figures -->

$(date -u +%Y-%m-%d), $(beanstalkd -v), beanpole $("$beanpole" -v | cut -d' ' -f2), $rounds rounds of $duration.

## In memory

\`beanpole bench --suite memory --against beanstalkd --rounds $rounds --duration $duration --markdown\`

$(bench --suite memory --duration "$duration" --markdown --against beanstalkd)

## With a sync before each reply

\`beanpole bench --suite journal --against 'beanstalkd -b {dir} -f 0' --server 'beanpole -b {dir}' --rounds $rounds --duration $duration --markdown\`

$(bench --suite journal --duration "$duration" --markdown --against 'beanstalkd -b {dir} -f 0' --server "$beanpole -b {dir}")

## With a sync every 50 ms

Both with their logs, \`--against 'beanstalkd -b {dir} -f 50' --server 'beanpole -b {dir} -f 50'\`:

$(bench --connections 50 --duration "$duration" --markdown --against 'beanstalkd -b {dir} -f 50' --server "$beanpole -b {dir} -f 50")

What the journal costs: beanpole in memory beside itself with \`-f 50\`, \`--against beanpole --server 'beanpole -b {dir} -f 50'\`:

$(bench --connections 50 --duration "$duration" --markdown --against "$beanpole" --server "$beanpole -b {dir} -f 50")

## Restart

\`beanpole bench --restart 1000000 --against 'beanstalkd -b {dir}' --server 'beanpole -b {dir}' --rounds $rounds --markdown\`: a
million jobs of 64 bytes are put, the server is killed, and started again.

$(bench --restart 1000000 --markdown --against 'beanstalkd -b {dir}' --server "$beanpole -b {dir}")

## Cleaning

\`beanpole bench --mix put-delete --connections 8 --backlog 200000\` on \`beanpole -b DIR -f 50\`, first with segments so large that
nothing is cleaned, then with small ones, where cleaning moves the 200,000 jobs again and again:

\`\`\`
-s 1073741824
$(measured 1073741824)

-s 1048576
$(measured 1048576)
\`\`\`
EOF
