#!/usr/bin/env bash
# Measures what is in doc/benchmarks.md: beanpole beside Debian's beanstalkd.
#
#   doc/benchmarks.sh BEANPOLE [PART ...]
#
# The page has parts, which begin with <!-- part NAME -->. Those that are named are measured,
# or all, in the order below, and each is written to the page as soon as it is there. So what is stopped on the way
# keeps what it has measured. Each part says when it was measured, on what and how often.
#
# Beside the page, in doc/benchmarks, are the figures as JSON and the charts that are drawn from them.
#
#   doc/benchmarks.sh charts
#
# draws the charts again, and measures nothing. doc/benchmarks-history.csv gets a line for each load of
# memory, journal, interval and crowd.
#
# These variables say how much is measured. All of it takes two hours on two cores, half an hour with the
# values on the right, and with these a quarter of an hour for the parts that charts are drawn from and console:
#
#   doc/benchmarks.sh BEANPOLE memory journal crowd footprint restart cluster console
#
#   ROUNDS        how often each load is run (5)                         3
#   DURATION      how long (2s)                                          300ms
#   SCALE_ROUNDS  how often each of the large experiments is (3)         1
#   SCALE_JOBS    how many jobs those have (as many as compare chooses)  300000
#   JOBS          how many are exported and imported (1000000)           100000
#   GAPS          how often the leader of a cluster goes, in each of
#                 three ways (50)                                        10
#   VIEWS         how often each page of the console is asked for (200)  50
set -euo pipefail
shopt -s inherit_errexit

here=$(cd "$(dirname "$0")" && pwd)
page=$here/benchmarks.md
saved=$here/benchmarks
history=$here/benchmarks-history.csv
rounds=${ROUNDS:-5}
duration=${DURATION:-2s}
scale=${SCALE_ROUNDS:-3}
jobs=${JOBS:-1000000}
gaps=${GAPS:-50}
views=${VIEWS:-200}
parts=(memory journal interval crowd footprint backlog due fairness observers expensive stalls engine restart cleaning cluster client commands console)

# compare measures something, and saves it under a name. It says in the page when a load could not be measured: its row is missing.
compare() { "$here/../bin/compare" -save "$saved/$1.json" -markdown "${@:2}" || printf '\n**Not all of it was measured**: run it again, for longer.\n'; }
load() { compare "$1" -rounds "$rounds" -duration "$duration" -history "$history" "${@:2}"; }
large() { compare "$1" -rounds "$scale" -duration "$duration" ${SCALE_JOBS:+-jobs "$SCALE_JOBS"} "${@:2}"; }

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
	(cd "$here/../bench/client" && go run . -server "$beanpole" -server beanstalkd -rounds "$rounds")
}

# members measures puts at a cluster of three, beside a single server and NATS JetStream, lets a member join, takes its leader away,
# and measures its memory beside a single server's.
members() {
	cd "$here/../bench/cluster"
	go run . -beanpole "$beanpole" -rounds "$rounds" -duration "$duration" -save "$saved/cluster.json"
	go run . -beanpole "$beanpole" -joins "$rounds" -connections 64,500 -duration "$duration"
	go run . -beanpole "$beanpole" -gaps "$gaps"
	go run . -beanpole "$beanpole" -memory "$scale" -jobs "${SCALE_JOBS:-4000000}" -body 64
}

# benchmarks measures the engine with very many jobs, in orders that suit it and in others, by turns as it is and as it was
# before it had a flat queue (decision 16).
patterns='Backlog|Fill|Middle|EverySecond|ReleaseAll|Memory|Drain'
heaps=4306aee
benchmarks() {
	local root=$here/.. old results
	old=$(mktemp -d) results=$(mktemp -d)
	git -C "$root" worktree add -q --detach "$old" $heaps
	cp "$root/internal/engine/backlog_bench_test.go" "$old/internal/engine"
	for ((i = 0; i < scale; i++)); do
		for tree in "$old" "$root"; do
			(cd "$tree" && go test ./internal/engine -run '^$' -bench "$patterns" -cpu 1 -timeout 60m) >>"$results/$([ "$tree" = "$old" ] && echo before || echo now)"
		done
	done
	git -C "$root" worktree remove --force "$old"
	(cd "$results" && go run golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da -format csv before now 2>/dev/null) | awk -F, '
		$1 == "" { unit = $2; times = sub(/^sec/, "ns", unit) ? 1e9 : 1; next }
		NF < 5 || $1 == "geomean" || unit ~ /^(B|allocs)\/op$/ { next }
		{ gsub("_", " ", $1); printf "| %s | %s | %.4g | %.4g | %s |\n", $1, unit, $2*times, $4*times, $2 ? sprintf("%.2f", $4/$2) : "-" }'
	rm -r "$results"
}

# manage measures what the command line does with many jobs, on both servers in
# turn, and prints a table.
manage() (
	local dir program pid='' name what few=$((jobs / 10))
	dir=$(mktemp -d)
	trap 'kill $pid; rm -rf "$dir"' EXIT
	for _ in $(seq "$scale"); do
		for program in "$beanpole" beanstalkd; do
			name=$(basename "$program")
			renew
			seq "$jobs" | "$beanpole" put --tube big --lines >/dev/null
			clocked export "$jobs" export --tube big
			mv "$dir/out" "$dir/file"
			renew
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

# renew starts the program of manage, in place of the one that runs.
renew() {
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

# pages measures the web console, and how soon Chromium has painted it, if that is installed.
pages() {
	(cd "$here/../bench" && go run ./console -views "$views" "$beanpole")
	command -v chromium >/dev/null || return 0
	(cd "$here/../internal/console/testdata/browser" && go test -run TestPaint -paints 20 | grep '^|')
}

# Each part prints what is between its marks in the page.

memory() {
	cat <<-PART
		## In memory

		![Commands per second of beanstalkd and beanpole](benchmarks/throughput.svg)

		![Commands per second with many commands in flight](benchmarks/pipelined.svg)

		\`compare -suite memory -rounds $rounds -duration $duration -markdown beanstalkd beanpole\`

		$(load memory -suite memory beanstalkd "$beanpole")
	PART
}

journal() {
	cat <<-PART
		## With a sync before each reply

		![Commands per second with a sync before each reply](benchmarks/sync.svg)

		\`compare -suite journal -rounds $rounds -duration $duration -markdown 'beanstalkd -b {dir} -f 0' 'beanpole -b {dir}'\`

		$(load journal -suite journal 'beanstalkd -b {dir} -f 0' "$beanpole -b {dir}")
	PART
}

interval() {
	cat <<-PART
		## With a sync every 50 ms

		Both with their logs, \`compare -connections 50 'beanstalkd -b {dir} -f 50' 'beanpole -b {dir} -f 50'\`:

		$(load interval -connections 50 'beanstalkd -b {dir} -f 50' "$beanpole -b {dir} -f 50")

		What the journal costs: beanpole in memory beside itself with \`-f 50\`, \`compare -connections 50 beanpole 'beanpole -b {dir} -f 50'\`:

		$(load interval-cost -connections 50 "$beanpole" "$beanpole -b {dir} -f 50")
	PART
}

crowd() {
	cat <<-PART
		## Crowds

		Tubes with a job in each, idle connections and waiting workers burden a server without taking part in the load. Each server is measured without
		them and with them, in turn.

		![Commands per second beside many tubes and connections](benchmarks/crowd.svg)

		\`compare -suite crowd -rounds $rounds -duration $duration -markdown beanstalkd beanpole\`

		$(load crowd -suite crowd beanstalkd "$beanpole")
	PART
}

footprint() {
	cat <<-PART
		## Memory

		![Memory of a job](benchmarks/memory.svg)

		\`compare -suite scale -only '^memory$' -rounds $scale${SCALE_JOBS:+ -jobs $SCALE_JOBS} -markdown beanstalkd beanpole\`

		$(large footprint -suite scale -only '^memory$' beanstalkd "$beanpole")

		The same with their logs, \`'beanstalkd -b {dir}' 'beanpole -b {dir}'\`:

		$(large footprint-journal -suite scale -only '^memory$' 'beanstalkd -b {dir}' "$beanpole -b {dir}")
	PART
}

# atScale prints one of the large experiments. Their headings say what they are.
atScale() {
	cat <<-PART
		\`compare -suite scale -only '^$1$' -rounds $scale -duration $duration${SCALE_JOBS:+ -jobs $SCALE_JOBS} -markdown beanstalkd beanpole\`

		$(large "$1" -suite scale -only "^$1\$" beanstalkd "$beanpole")
	PART
}

backlog() { printf '## At scale\n\n' && atScale backlog; }
due() { atScale due; }
fairness() { atScale fairness; }
observers() { atScale observers; }
expensive() { atScale expensive; }

stalls() {
	local admin='--admin unix:{dir}/admin.socket' jobs=${SCALE_JOBS:-5000000} export=$((4 * scale - 1))
	local others='list|move|clear|kick|due|disconnect|storm|scrape|reload'
	cat <<-PART
		## Beside what takes long

		How long clients wait while somebody else does what takes long: in memory, and with a sync before each reply. The same is done at another server first, of which the clients see only that
		it takes processors. Their p99 beside that, or alone if that is longer, is the measure, and it is to be twice as high at most.

		The clients are a process with real-time priority. With the priority of others, what decided their p99 on two processors was how often the kernel let them wait for their slice, 5.4 ms at most in
		\`perf sched latency\`, which no server can help: the ratio of the same server beside the same clear was 0.20, 0.21, 1.25, 2.92, 13.4 and 20.3 in six rounds.

		\`compare -suite stalls -only '$others' -jobs $jobs -rounds $scale -duration $duration -markdown 'beanpole $admin' 'beanpole -b {dir} -f 0 $admin'\`

		$(large stalls -suite stalls -only "$others" -jobs "$jobs" "$beanpole $admin" "$beanpole -b {dir} -f 0 $admin")

		Rounds of \`export\` are far apart: three of them said from 0.84 to 2.55 times in memory. \`compare -suite stalls -only export -jobs $jobs -rounds $export -duration $duration -markdown 'beanpole $admin' 'beanpole -b {dir} -f 0 $admin'\`:

		$(large stalls-export -suite stalls -only export -jobs "$jobs" -rounds "$export" "$beanpole $admin" "$beanpole -b {dir} -f 0 $admin")
	PART
}

engine() {
	local figures
	figures=$(benchmarks)
	cat <<-PART
		## The engine alone

		Without sockets, with a million and ten million jobs in the queue, before the flat queue ([decision 16](decisions/0016-a-flat-queue.md), commit $heaps) and now, by
		turns: \`go test ./internal/engine -run '^$' -bench '$patterns' -cpu 1\`, compared by benchstat. *times-empty* is how many times as long a put, a reserve
		and a delete take as in an empty queue, *times-asked* how many times at most is asked.

		| median | unit | before | now | ratio |
		|---|---|---:|---:|---:|
		$figures
	PART
}

restart() {
	cat <<-PART
		## Restart

		![From a crash to the first reply](benchmarks/restart.svg)

		Jobs of 64 bytes are put, the server is killed, and started again:
		\`compare -suite restart -jobs 1000000 -rounds $rounds -markdown 'beanstalkd -b {dir}' 'beanpole -b {dir}'\`

		$(compare restart -suite restart -jobs 1000000 -rounds "$rounds" 'beanstalkd -b {dir}' "$beanpole -b {dir}")

		With 5,000,000 jobs, rounds: $scale

		$(compare restart-large -suite restart -jobs 5000000 -rounds "$scale" 'beanstalkd -b {dir}' "$beanpole -b {dir}")
	PART
}

cleaning() {
	local large small
	large=$(measured 1073741824)
	small=$(measured 1048576)
	cat <<-PART
		## Cleaning

		\`beanpole bench --mix put-delete --connections 8 --backlog 200000 --duration 5s\` on \`beanpole -b DIR -f 50\`, first with segments so large that
		nothing is cleaned, then with small ones, where cleaning moves the 200,000 jobs again and again:

		\`\`\`
		-s 1073741824
		$large

		-s 1048576
		$small
		\`\`\`
	PART
}

cluster() {
	local figures
	figures=$(members)
	cat <<-PART
		## A cluster

		![Puts per second of a cluster beside a single server and NATS JetStream](benchmarks/cluster.svg)

		Three members on one machine, with one disk and its processors: \`cd bench/cluster && go run . -beanpole beanpole -rounds $rounds -duration $duration\`,
		with \`-joins $rounds -connections 64,500\`, with \`-gaps $gaps\`, and with \`-memory $scale -jobs ${SCALE_JOBS:-4000000} -body 64\`. What differs from NATS JetStream is said in the comment of that package.

		The processor time of a put at the leader, with 500 clients, is to be 2.5 times the single server's at most. On a quiet machine it is 2.4 times that, beside other work 2.6 to 3.4. By \`perf\`, of the 35 us of all three members
		10 are the clients' sockets and the turn, as in the single server. Two followers that apply take 3, three logs that are written and synced 4, three that get their next segments ready 1, the connections between members 4, and
		the scheduler of Go with its monitor 5: each member has goroutines that wait for a disk and for two others, where the single server has a loop. The rest is spread thinly.

		The aim was 4 times the puts of JetStream with 500 clients, and it is 3.3 times as many. Two processors have to do all of it, the clients too, so processor time decides: 20.6 us a put here, 58.5 us there. For 4 times as many
		all three members together would have to take 14.6 us, twice what the single server alone takes; see above where they go.

		A job takes a member what it takes a single server. Besides, a member keeps the newest 32 MiB of its log, for others that are a little behind, and what is done with entries leaves
		garbage: right after many puts up to a third of all, which the system gets back. Three seconds after 4,000,000 puts, beside other work, a leader took 1.13 times what a single server took, and followers 1.09 times that.

		10,000 idle clients of a follower take 2.3 KiB each at the leader and 1.2 KiB at the follower; before event loops drove them it was 17 and 25 KiB.

		$figures
	PART
}

client() {
	local figures
	figures=$(clients)
	cat <<-PART
		## The Go client

		\`cd bench/client && go run . -server beanpole -server beanstalkd -rounds $rounds\`

		$figures
	PART
}

commands() {
	local figures
	figures=$(manage)
	cat <<-PART
		## The command line

		\`JOBS=$jobs SCALE_ROUNDS=$scale doc/benchmarks.sh beanpole commands\`

		\`export\` of $jobs jobs with bodies of up to seven bytes, their \`import\`, and \`move\` and \`clear\` of a tenth of them, over a unix socket: jobs per
		second, the median, the smallest and the largest. On beanstalkd \`move\` and \`clear\` work by the plain protocol.

		$figures
	PART
}

console() {
	local figures
	figures=$(pages)
	cat <<-PART
		## The console

		\`doc/benchmarks.sh beanpole console\`

		A server in memory with 10,000 tubes and 1,000,000 jobs of 240 bytes or so, ready. Each page is asked for $views times, while 8 clients put, reserve and delete in another tube, a
		command each millisecond, from a process with real-time priority. The aims are a p99 of 25 ms, 64 kB for the overview and 40 kB for the others with all that comes with them, a first paint within 200 ms,
		a search of all within 5 s with a first answer within 0.3 s, and clients that with ten viewers wait 10 % longer at most. The viewers of another server take as much of the processors, so what clients wait longer
		than beside those is the server's doing.

		$figures
	PART
}

# record measures a part and puts it in its place in the page. It sets status to what came of that.
record() {
	local new
	new=$(mktemp)
	echo "$0: $1" >&2
	set +e
	(
		set -e
		trap 'exit 130' INT TERM
		"$1" >"$new"
	)
	status=$?
	set -e
	if [ $status = 0 ]; then
		printf '\n*Measured on %s with %s and beanpole at commit %s.*\n' \
			"$(date -u +%Y-%m-%d)" "$(beanstalkd -v)" "$(git -C "$here" rev-parse --short HEAD)" >>"$new"
		awk -v mark="<!-- part $1 -->" -v new="$new" '
			$0 == mark { print; while ((getline line < new) > 0) print line; print ""; skip = 1; next }
			/^<!-- part / { skip = 0 }
			!skip' "$page" >"$page.new"
		mv "$page.new" "$page"
		charts
	fi
	rm -f "$new"
}

charts() { (cd "$here/../bench" && go run ./plot "$saved"); }

if [ "${1:-}" = charts ]; then
	charts
	exit
fi
beanpole=$(realpath "${1:?usage: $0 BEANPOLE [PART ...]}")
[ $# = 1 ] || parts=("${@:2}")
for part in "${parts[@]}"; do
	grep -qx "<!-- part $part -->" "$page" || { echo "$0: $page has no part $part" >&2; exit 2; }
done
mkdir -p "$saved"
(cd "$here/../bench" && go build -o ../bin/compare ./compare)
trap 'exit 130' INT TERM
missing=()
for part in "${parts[@]}"; do
	record "$part"
	[ $status != 130 ] || exit 130
	[ $status = 0 ] || missing+=("$part")
done
[ ${#missing[@]} = 0 ] || { echo "$0: not measured: ${missing[*]}" >&2; exit 1; }
