package soak

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// pastKept is how many ids of jobs that were deleted long ago are remembered,
// and pastAsked how many of them an audit asks for.
const (
	pastKept  = 200_000
	pastAsked = 2_000
)

// audit asks a server that nobody else uses for every job. What it says is from
// then on what is true.
func (l *account) audit(rng *rand.Rand, addr net.Addr) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	nc, err := net.Dial(addr.Network(), addr.String())
	if err != nil {
		return err
	}
	defer nc.Close()
	c := &client{account: l, rng: rng, nc: nc}

	// All that are known, and all that nobody was told of.
	var ids []uint64
	for id := range l.jobs {
		ids = append(ids, id)
	}
	ahead := l.last + uint64(len(l.lost)) + l.refused + 100
	for id := l.audited + 1; id <= ahead; id++ {
		if l.jobs[id] == nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	found := 0
	for part := range slices.Chunk(ids, 200) {
		n, err := c.auditJobs(part)
		if err != nil {
			return err
		}
		found += n
	}
	if err := c.auditPast(); err != nil {
		return err
	}
	if err := c.auditCount(found); err != nil {
		return err
	}
	// What was not found now will never be, for its connection has ended.
	clear(l.lost)
	l.audited, l.refused = l.last, 0
	l.count.add("jobs audited", found)
	return nil
}

// auditJobs asks for jobs by id and returns how many were found.
func (c *client) auditJobs(ids []uint64) (found int, err error) {
	var text []byte
	for _, id := range ids {
		text = wire.AppendPeek(text, id)
		text = wire.AppendCommand(text, &wire.Command{Op: wire.StatsJob, ID: id})
	}
	sent := time.Now()
	go c.write(text)
	for _, id := range ids {
		var peek, stats wire.Reply
		if err := c.read(&peek, false); err != nil {
			return 0, err
		}
		peek.Body = slices.Clone(peek.Body)
		if err := c.read(&stats, false); err != nil {
			return 0, err
		}
		if peek.Kind == wire.Found {
			found++
		}
		if err := c.auditJob(id, &peek, &stats, sent); err != nil {
			return 0, wrong("audit: job %d: %w", id, err)
		}
	}
	return found, nil
}

func (c *client) auditJob(id uint64, peek, stats *wire.Reply, sent time.Time) error {
	if peek.Kind == wire.NotFound && stats.Kind == wire.NotFound {
		j := c.jobs[id]
		if j == nil {
			return nil
		}
		c.forget(j)
		return j.mayBeGone()
	}
	if peek.Kind != wire.Found || stats.Kind != wire.OK || peek.ID != id {
		return fmt.Errorf("peek says %v %d, stats-job says %v", peek.Kind, peek.ID, stats.Kind)
	}
	j, err := c.seen(peek, c.tick())
	if err != nil {
		return err
	}
	got, err := wire.ParseDict(stats.Body)
	if err != nil {
		return err
	}
	c.durable = max(c.durable, id)
	return j.found(got, sent)
}

// found compares a job with its statistics, which are those of a moment since they were asked for, and takes them over.
func (j *job) found(got map[string]string, sent time.Time) error {
	now := time.Now()
	state := map[string]states{"ready": ready, "delayed": delayed, "buried": buried}[got["state"]]
	may := j.could
	if may&delayed != 0 {
		if now.After(j.dueFrom.Add(-slack)) {
			may |= ready
		}
		if sent.After(j.settled.Add(j.maxDelay + slack)) {
			may &^= delayed
		}
	}
	pri, err := strconv.ParseUint(got["pri"], 10, 32)
	switch {
	case err != nil:
		return err
	case state&may == 0:
		return fmt.Errorf("state %s is none that it can have: %v", got["state"], j)
	case !slices.Contains(j.pris, uint32(pri)):
		return fmt.Errorf("pri %d is none that it can have: %v", pri, j)
	case got["tube"] != j.tube || got["ttr"] != strconv.Itoa(int(j.ttr)):
		return fmt.Errorf("tube %s, ttr %s: %v", got["tube"], got["ttr"], j)
	}
	if state != delayed {
		j.maxDelay = 0
	}
	j.could, j.pris, j.unborn = state, []uint32{uint32(pri)}, false
	return nil
}

// forget takes a job that is gone out of the account, but for its id.
func (l *account) forget(j *job) {
	delete(l.jobs, j.id)
	l.unlist(j)
	if j.unborn {
		return // another job may get its id
	}
	if len(l.past) < pastKept {
		l.past = append(l.past, j.id)
	} else {
		l.past[j.id%pastKept] = j.id
	}
}

// auditPast asks for some of those that were deleted long ago.
func (c *client) auditPast() error {
	var text []byte
	var ids []uint64
	for range min(pastAsked, len(c.past)) {
		id := c.past[c.rng.IntN(len(c.past))]
		ids = append(ids, id)
		text = wire.AppendPeek(text, id)
	}
	go c.write(text)
	for _, id := range ids {
		var r wire.Reply
		if err := c.read(&r, false); err != nil {
			return err
		}
		if r.Kind != wire.NotFound {
			return wrong("audit: job %d was deleted long ago and is back: %v", id, r.Kind)
		}
	}
	return nil
}

// auditCount compares the number of jobs with what the server says.
func (c *client) auditCount(found int) error {
	go c.write([]byte("stats\r\n"))
	var r wire.Reply
	if err := c.read(&r, false); err != nil {
		return err
	}
	stats, err := wire.ParseDict(r.Body)
	if err != nil {
		return wrong("%w", err)
	}
	total := 0
	for _, state := range []string{"ready", "reserved", "delayed", "buried"} {
		n, err := strconv.Atoi(stats["current-jobs-"+state])
		if err != nil {
			return wrong("stats: %w", err)
		}
		total += n
	}
	if total != found {
		return wrong("audit: the server counts %d jobs, and %d were found", total, found)
	}
	if health, ok := stats["journal-health"]; !ok || health != "ok" {
		return wrong("journal-health is %q after a start", health)
	}
	return nil
}
