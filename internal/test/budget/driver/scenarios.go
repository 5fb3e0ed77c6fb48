package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A scenario is an operation to count. All executions cost the same, except the first
// few, in which buffers grow.
type scenario struct {
	name       string
	operations int   // per run; enough that the first ones are negligible
	commands   int   // per operation, or another unit of the budget
	segment    int64 // size of the journal's segments in bytes; 0 means no journal

	// prepare prepares the queue and returns the operation.
	prepare func(q *queue) (operation func())
}

const (
	memory       = 0       // no journal
	largeSegment = 1 << 20 // large enough to be rarely compacted
	smallSegment = 1 << 18 // small enough to be compacted often
)

var scenarios = append(withPolicies(), []scenario{
	{"parse", 5000, int(wire.NumOps) - 1, memory, func(*queue) func() { return parseAll() }},

	{"put-reserve-delete", 10000, 3, memory, jobLife},
	{"put-reserve-delete-100000-jobs-behind", 10000, 3, memory, func(q *queue) func() {
		q.fill(100000, engine.Spec{Pri: 1}, inDefault)
		return jobLife(q)
	}},
	{"put-reserve-delete-10000-tubes", 10000, 3, memory, func(q *queue) func() {
		q.fill(10000, engine.Spec{}, func(i int) string { return tubeName(firstTube + i) })
		return jobLife(q)
	}},
	{"put-reserve-delete-100000-unique", 40000, 3, memory, func(q *queue) func() {
		q.Configure(func(e *engine.Engine) { e.SetPolicies(engine.PolicyFunc(unique)) })
		q.fill(100000, engine.Spec{Pri: 1}, inDefault)
		return jobLife(q)
	}},
	{"put-reserve-delete-want", 10000, 3, memory, wanting},
	{"caps-want", 10000, 2, memory, capsWant},
	{"put-reserve-batch-delete-batch", 2000, 10, memory, batches}, // the unit is a job
	{"another-of-10000-tubes", 10000, 6, memory, anotherTube},
	{"delayed-100000-behind", 10000, 3, memory, delayed},
	{"ttr-runs-out", 10000, 1, memory, timeout},
	{"reserve-touch-release", 10000, 3, memory, touchRelease},
	{"reserve-bury-kick", 10000, 3, memory, buryKick},
	{"wake", 10000, 3, memory, wake},

	{"journal-put-reserve-delete", 10000, 3, largeSegment, jobLife},
	{"journal-reserve-bury-kick", 10000, 3, largeSegment, buryKick},
	{"journal-cleaning", 20000, 3, smallSegment, func(q *queue) func() {
		q.fill(20000, engine.Spec{Pri: 1}, inDefault) // keeps the cleaner busy all the time
		return jobLife(q)
	}},
	{"journal-put-reserve-batch-delete-batch", 2000, 10, largeSegment, batches},
	{"replay", 2, replayed, largeSegment, replay},
}...)

// policies contains policies without an effect, whose cost is compared with a queue
// without policies.
var policies = map[string]*engine.Policy{
	"attempts":     {MaxAttempts: 10, MaxTimeouts: 10, MaxReleases: 10},
	"retry":        {RetryDelay: int64(time.Second), RetryMax: int64(time.Hour), RetryFactor: 2, RetryOn: engine.Timeout | engine.Lost},
	"ttl":          {TTL: int64(1000 * time.Hour), KeepBuried: int64(1000 * time.Hour)},
	"max-reserved": {MaxReserved: 1000},
	"rate":         {Interval: 100, Burst: 1000},
	"all": {
		MaxAttempts: 10, MaxTimeouts: 10, MaxReleases: 10, RetryDelay: int64(time.Second), RetryMax: int64(time.Hour), RetryFactor: 2,
		RetryOn: engine.Timeout | engine.Lost, MaxReserved: 1000, Interval: 100, Burst: 1000, TTL: int64(1000 * time.Hour),
	},
}

// withPolicies returns scenarios without a policy and with each policy.
func withPolicies() (all []scenario) {
	all = []scenario{{"life", 10000, 5, memory, twoTries}}
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		s := all[0]
		s.name += "-with-" + name
		s.prepare = func(q *queue) func() {
			q.Configure(func(e *engine.Engine) {
				e.SetPolicies(engine.PolicyFunc(func(string) *engine.Policy { return policies[name] }))
			})
			return twoTries(q)
		}
		all = append(all, s)
	}
	return all
}

// parseAll parses each command once.
func parseAll() func() {
	var in []byte
	for op := wire.Unknown + 1; op < wire.NumOps; op++ {
		in = wire.AppendCommand(in, &wire.Command{
			Op: op, ID: firstID, Pri: 1 << 31, TTR: 60, Delay: 10, Timeout: 10, Count: 7,
			Tube: []byte(tubeName(firstTube)), Text: []byte("7"), State: wire.StateReady, Body: make([]byte, bodySize),
		})
	}
	p := wire.Parser{MaxBody: wire.DefaultMaxBody, Auth: true}
	var cmd wire.Command
	return func() {
		for rest := in; len(rest) > 0; {
			n, ok := p.Next(rest, &cmd)
			if !ok || cmd.Fault != wire.None {
				panic("driver: a command that cannot be parsed")
			}
			rest = rest[n:]
		}
	}
}

// unique returns a policy that makes jobs with equal bodies duplicates.
func unique(string) *engine.Policy { return &engine.Policy{Unique: byBody} }

var byBody = &engine.Key{Name: "body", Of: func(_ *[]byte, body []byte) ([]byte, bool) { return body, true }}

// eachJob sends the same commands for one job after another.
func eachJob(q *queue, write func(dst []byte, id uint64, _ string) []byte, before ...byte) func() {
	c := newClient(q)
	if len(before) > 0 {
		c.send(before)
	}
	s := newScript(write)
	return func() {
		q.pass(time.Microsecond)
		q.id++
		c.send(s.with(q.id, 0))
	}
}

// jobLife puts, reserves and deletes a job.
func jobLife(q *queue) func() { return eachJob(q, life) }

func life(dst []byte, id uint64, _ string) []byte {
	return wire.AppendCommand(wire.AppendCommand(appendPut(dst, 0), &wire.Command{Op: wire.Reserve}), &wire.Command{Op: wire.Delete, ID: id})
}

// wanting is jobLife with a worker that has sent "want".
func wanting(q *queue) func() { return eachJob(q, life, []byte("want tube reserves age\r\n")...) }

// capsWant sends the first commands of the Go client.
func capsWant(q *queue) func() {
	c := newClient(q)
	begin := []byte("caps\r\nwant tube reserves age\r\n")
	return func() { c.send(begin) }
}

// batches puts ten jobs, and reserves and deletes them in batches.
func batches(q *queue) func() {
	const n = 10
	c := newClient(q)
	var put, remove []byte
	for range n {
		put = appendPut(put, 0)
	}
	put = fmt.Appendf(put, "reserve-batch %d\r\n", n)
	return func() {
		q.pass(time.Microsecond)
		c.send(put)
		remove = append(remove[:0], "delete-batch"...)
		for range n {
			q.id++
			remove = strconv.AppendUint(append(remove, ' '), q.id, 10)
		}
		c.send(append(remove, "\r\n"...))
	}
}

// twoTries releases a job and reserves it again.
func twoTries(q *queue) func() {
	return eachJob(q, func(dst []byte, id uint64, _ string) []byte {
		dst = wire.AppendCommand(appendPut(dst, 0), &wire.Command{Op: wire.Reserve})
		dst = wire.AppendCommand(wire.AppendCommand(dst, &wire.Command{Op: wire.Release, ID: id}), &wire.Command{Op: wire.Reserve})
		return wire.AppendCommand(dst, &wire.Command{Op: wire.Delete, ID: id})
	})
}

func appendPut(dst []byte, delay uint32) []byte {
	return wire.AppendCommand(dst, &wire.Command{Op: wire.Put, Delay: delay, TTR: ttr, Body: make([]byte, bodySize)})
}

// anotherTube puts, reserves and deletes a job in a tube that the client has not used or
// watched before. A delayed job in each tube keeps the tubes alive.
func anotherTube(q *queue) func() {
	const tubes = 10000
	q.fill(tubes, engine.Spec{Delay: 1 << 31}, func(i int) string { return tubeName(firstTube + i) })
	c := newClient(q)
	s := newScript(func(dst []byte, id uint64, tube string) []byte {
		dst = wire.AppendCommand(dst, &wire.Command{Op: wire.Use, Tube: []byte(tube)})
		dst = appendPut(dst, 0)
		dst = wire.AppendCommand(dst, &wire.Command{Op: wire.Watch, Tube: []byte(tube)})
		dst = wire.AppendCommand(dst, &wire.Command{Op: wire.Reserve})
		dst = wire.AppendCommand(dst, &wire.Command{Op: wire.Ignore, Tube: []byte(tube)})
		return wire.AppendCommand(dst, &wire.Command{Op: wire.Delete, ID: id})
	})
	k := 0
	return func() {
		q.pass(time.Microsecond)
		q.id++
		k = (k + 7919) % tubes // not the next tube
		c.send(s.with(q.id, firstTube+k))
	}
}

// delayed puts a job with a delay. The job becomes ready in the tick of the next
// operation, which reserves it. Many other jobs stay delayed.
func delayed(q *queue) func() {
	q.fill(100000, engine.Spec{Delay: 1 << 31}, inDefault)
	c := newClient(q)
	s := newScript(func(dst []byte, id uint64, _ string) []byte {
		dst = wire.AppendCommand(dst, &wire.Command{Op: wire.Reserve})
		dst = wire.AppendCommand(dst, &wire.Command{Op: wire.Delete, ID: id})
		return appendPut(dst, 1)
	})
	c.send(appendPut(nil, 1))
	return func() {
		q.pass(2 * time.Second)
		q.id++
		c.send(s.with(q.id, 0))
	}
}

// timeout reserves a job whose TTR expires before the tick of the next operation.
func timeout(q *queue) func() {
	c := newClient(q)
	c.send(appendPut(nil, 0))
	reserve := wire.AppendCommand(nil, &wire.Command{Op: wire.Reserve})
	return func() {
		q.pass(2 * ttr * time.Second)
		c.send(reserve)
	}
}

// oneJob sends the same commands for the same job.
func oneJob(q *queue, write func(dst []byte, id uint64, _ string) []byte) func() {
	c := newClient(q)
	c.send(appendPut(nil, 0))
	q.id++
	s := newScript(write)
	return func() {
		q.pass(time.Microsecond)
		c.send(s.with(q.id, 0))
	}
}

func touchRelease(q *queue) func() {
	return oneJob(q, func(dst []byte, id uint64, _ string) []byte {
		dst = wire.AppendCommand(dst, &wire.Command{Op: wire.Reserve})
		dst = wire.AppendCommand(dst, &wire.Command{Op: wire.Touch, ID: id})
		return wire.AppendCommand(dst, &wire.Command{Op: wire.Release, ID: id})
	})
}

func buryKick(q *queue) func() {
	return oneJob(q, func(dst []byte, id uint64, _ string) []byte {
		dst = wire.AppendCommand(dst, &wire.Command{Op: wire.Reserve})
		dst = wire.AppendCommand(dst, &wire.Command{Op: wire.Bury, ID: id})
		return wire.AppendCommand(dst, &wire.Command{Op: wire.Kick, Count: 1})
	})
}

// wake puts a job while a worker waits for it.
func wake(q *queue) func() {
	producer, worker := newClient(q), newClient(q)
	put, reserve := appendPut(nil, 0), wire.AppendCommand(nil, &wire.Command{Op: wire.Reserve})
	s := newScript(func(dst []byte, id uint64, _ string) []byte {
		return wire.AppendCommand(dst, &wire.Command{Op: wire.Delete, ID: id})
	})
	return func() {
		q.pass(time.Microsecond)
		q.id++
		worker.send(reserve)
		producer.send(put)
		worker.send(s.with(q.id, 0))
	}
}

// replayed is the number of jobs that replay reads.
const replayed = 20000

// replay opens a journal.
func replay(q *queue) func() {
	q.fill(replayed, engine.Spec{}, inDefault)
	must(q.Close())
	return func() {
		j, e := open(q.dir, largeSegment)
		if n := e.Stats().Ready; n != replayed {
			panic("driver: jobs are missing")
		}
		must(j.Close())
	}
}
