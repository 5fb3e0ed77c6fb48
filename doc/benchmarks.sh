#!/usr/bin/env bash
# Prints doc/benchmarks.md, measured again: beanpole beside Debian's beanstalkd.
# It adds a line for each comparison to doc/benchmarks-history.csv.
#
#   doc/benchmarks.sh BEANPOLE
#
# ROUNDS (5) and DURATION (2s) say how often and how long each load is run,
# SCALE_ROUNDS (3) how often each of the large experiments is, and JOBS (1000000)
# how many jobs are exported and imported.
#
#   doc/benchmarks.sh BEANPOLE commands
#
# prints only the figures of the command line, and
#
#   doc/benchmarks.sh BEANPOLE console
#
# only those of the web console.
set -euo pipefail

beanpole=$(realpath "${1:?usage: $0 BEANPOLE}")
rounds=${ROUNDS:-5}
duration=${DURATION:-2s}
scale=${SCALE_ROUNDS:-3}
jobs=${JOBS:-1000000}
here=$(cd "$(dirname "$0")" && pwd)
history=$here/benchmarks-history.csv

(cd "$here/.." && go build -o bin/compare ./internal/bench/compare)

# compare says in the page when a load could not be measured: its row is missing.
compare() { "$here/../bin/compare" -rounds "$rounds" -markdown "$@" || printf '\n**Not all of it was measured**: run it again, for longer.\n'; }
suite() { compare -duration "$duration" -history "$history" -suite "$@"; }

# measured runs one load on a server with a journal of the given segment size,
# and tells how many records cleaning has moved meanwhile.
measured() {
	local size=$1 dir port=21399 pid
	dir=$(mktemp -d)
	"$beanpole" -p $port -b "$dir" -f 50 -s "$size" 2>/dev/null &
	pid=$!
	sleep 1
	"$beanpole" bench --addr 127.0.0.1:$port --mix put-delete --connections 8 --backlog 200000 --duration 5s
	printf 'stats\r\nquit\r\n' | timeout 5 bash -c "exec 3<>/dev/tcp/127.0.0.1/$port; cat >&3; cat <&3" | grep -a records-
	kill $pid
	wait $pid || true
	rm -rf "$dir"
}

# clients measures the Go client beside others, on both servers.
clients() {
	(cd "$here/../internal/clientbench" && go run . -server "$beanpole" -server beanstalkd -rounds "$rounds")
}

# cluster measures puts at a cluster of three, beside a single server and NATS JetStream, and kills its leader.
cluster() {
	cd "$here/../internal/clusterbench"
	go run . -beanpole "$beanpole" -rounds "$rounds" -duration "$duration"
	go run . -beanpole "$beanpole" -kills 50
}

# engine measures the engine with very many jobs, in orders that suit it and in others.
large='Backlog|Fill|Middle|EverySecond|ReleaseAll|Memory|Drain'
engine() {
	(cd "$here/.." && go test ./internal/engine -run '^$' -bench "$large" -cpu 1 -timeout 30m) | sed -n 's/^Benchmark//p'
}

# commands measures what the command line does with many jobs, on both servers in
# turn, and prints a table.
commands() (
	local dir program pid='' name what few=$((jobs / 10))
	dir=$(mktemp -d)
	trap 'kill $pid; rm -rf "$dir"' EXIT
	for _ in $(seq "$scale"); do
		for program in "$beanpole" beanstalkd; do
			name=$(basename "$program")
			restart
			seq "$jobs" | "$beanpole" put --tube big --lines >/dev/null
			clocked export "$jobs" export --tube big
			mv "$dir/out" "$dir/file"
			restart
			clocked import "$jobs" import "$dir/file"
			rm "$dir/file.progress"
			seq "$few" | "$beanpole" put --tube few --lines >/dev/null
			clocked move "$few" move few other --state ready
			clocked clear "$few" clear other --state ready --yes
		done
	done
	echo "| jobs/s | beanpole | beanstalkd |"
	echo "|---|--:|--:|"
	for what in export import move clear; do
		echo "| \`$what\` | $(middle "$dir/$(basename "$beanpole").$what") | $(middle "$dir/beanstalkd.$what") |"
	done
)

# restart starts the program of commands, in place of the one that runs.
restart() {
	[ -z "$pid" ] || { kill "$pid" && wait "$pid" || true; }
	rm -f "$dir/socket"
	"$program" -l "unix:$dir/socket" 2>/dev/null &
	pid=$!
	export BEANPOLE_ADDR=unix:$dir/socket
	until "$beanpole" ping >/dev/null 2>&1; do sleep 0.1; done
}

# clocked runs a command for so many jobs, and notes how many that is a second.
clocked() {
	local file=$dir/$name.$1 n=$2 from
	shift 2
	from=$(date +%s%N)
	"$beanpole" "$@" >"$dir/out" 2>/dev/null
	echo $((n * 1000000000 / ($(date +%s%N) - from))) >>"$file"
}

# middle prints the median, the smallest and the largest of the numbers in a file.
middle() { sort -n "$1" | awk '{ v[NR] = $1 } END { printf "%d (%d..%d)", v[int((NR + 1) / 2)], v[1], v[NR] }'; }

# pages measures the web console.
pages() { (cd "$here/.." && go run ./internal/bench/console "$beanpole"); }

case "${2:-}" in
commands)
	commands
	exit
	;;
console)
	pages
	exit
	;;
esac

sed '/^<!-- figures -->/,$d' "$here/benchmarks.md"
cat <<PAGE
<!-- figures -->

$(date -u +%Y-%m-%d), $(beanstalkd -v), beanpole at commit $(git -C "$here" rev-parse --short HEAD), $rounds rounds of $duration.

## In memory

\`compare -suite memory -rounds $rounds -duration $duration -markdown beanstalkd beanpole\`

$(suite memory beanstalkd "$beanpole")

## With a sync before each reply

\`compare -suite journal -rounds $rounds -duration $duration -markdown 'beanstalkd -b {dir} -f 0' 'beanpole -b {dir}'\`

$(suite journal 'beanstalkd -b {dir} -f 0' "$beanpole -b {dir}")

## With a sync every 50 ms

Both with their logs, \`compare -connections 50 'beanstalkd -b {dir} -f 50' 'beanpole -b {dir} -f 50'\`:

$(compare -connections 50 -duration "$duration" -history "$history" 'beanstalkd -b {dir} -f 50' "$beanpole -b {dir} -f 50")

What the journal costs: beanpole in memory beside itself with \`-f 50\`, \`compare -connections 50 beanpole 'beanpole -b {dir} -f 50'\`:

$(compare -connections 50 -duration "$duration" -history "$history" "$beanpole" "$beanpole -b {dir} -f 50")

## Crowds

Tubes with a job in each, idle connections and waiting workers burden a server without taking part in the load. Each server is measured without
them and with them, in turn.

\`compare -suite crowd -rounds $rounds -duration $duration -markdown beanstalkd beanpole\`

$(suite crowd beanstalkd "$beanpole")

## At scale

\`compare -suite scale -rounds $scale -duration $duration -markdown beanstalkd beanpole\`

$(compare -suite scale -rounds "$scale" -duration "$duration" beanstalkd "$beanpole")

The memory of both with their logs, \`compare -suite scale -only '^memory$' -rounds $scale -markdown 'beanstalkd -b {dir}' 'beanpole -b {dir}'\`:

$(compare -suite scale -only '^memory$' -rounds "$scale" 'beanstalkd -b {dir}' "$beanpole -b {dir}")

## The engine alone

Without sockets, with a million and ten million jobs in the queue: \`go test ./internal/engine -run '^$' -bench '$large' -cpu 1\`

\`\`\`
$(engine)
\`\`\`

## Restart

Jobs of 64 bytes are put, the server is killed, and started again:
\`compare -suite restart -jobs 1000000 -rounds $rounds -markdown 'beanstalkd -b {dir}' 'beanpole -b {dir}'\`

$(compare -suite restart -jobs 1000000 'beanstalkd -b {dir}' "$beanpole -b {dir}")

With 5,000,000 jobs, $scale rounds:

$(compare -suite restart -rounds "$scale" -jobs 5000000 'beanstalkd -b {dir}' "$beanpole -b {dir}")

## Cleaning

\`beanpole bench --mix put-delete --connections 8 --backlog 200000 --duration 5s\` on \`beanpole -b DIR -f 50\`, first with segments so large that
nothing is cleaned, then with small ones, where cleaning moves the 200,000 jobs again and again:

\`\`\`
-s 1073741824
$(measured 1073741824)

-s 1048576
$(measured 1048576)
\`\`\`

## A cluster

Three members on one machine, with one disk and its processors: \`cd internal/clusterbench && go run . -beanpole beanpole -rounds $rounds -duration $duration\`.
What differs from NATS JetStream is said in the comment of that package.

$(cluster)

## The Go client

\`cd internal/clientbench && go run . -server beanpole -server beanstalkd -rounds $rounds\`

$(clients)

## The command line

\`JOBS=$jobs SCALE_ROUNDS=$scale doc/benchmarks.sh beanpole commands\`

\`export\` of $jobs jobs with bodies of up to seven bytes, their \`import\`, and \`move\` and \`clear\` of a tenth of them, over a unix socket: jobs per
second, the median of $scale rounds, the smallest and the largest. On beanstalkd \`move\` and \`clear\` work by the plain protocol.

$(commands)

## The console

\`doc/benchmarks.sh beanpole console\`

A server in memory with 10,000 tubes and 1,000,000 jobs of 240 bytes or so, ready. Each page is asked for 200 times, while 8 clients put, reserve and delete in other tubes, a
command each millisecond. The aims are a p99 of 25 ms, and 64 kB for the overview, 40 kB for the others (a style sheet and a script, 9 kB, come with the first of them).

$(pages)
PAGE
