package soak

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// backlog is how many jobs there are, more or less.
const backlog = 4000

var tubes = []string{"default", "a", "b", "c", "kicked"}

// largest is the largest body that the server takes, in bytes.
const largest = 65535

// batch makes up commands to send together, and enters what they may do.
func (c *client) batch() []*command {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 1
	if c.rng.IntN(3) == 0 {
		n = 1 + c.rng.IntN(40)
	}
	var cmds []*command
	for range n {
		cmds = append(cmds, c.command()...)
	}
	if c.rng.IntN(8) == 0 {
		cmds = append(cmds, c.reserve(c.rng.IntN(2), c.rng.IntN(3) == 0))
	}
	return cmds
}

// command makes up one command; of two replies, the second is to no text.
func (c *client) command() []*command {
	one := func(cmd *command) []*command { return []*command{cmd} }
	if len(c.held) > 0 && c.rng.IntN(2) == 0 {
		return one(c.finish(c.held[c.rng.IntN(len(c.held))]))
	}
	tube := tubes[c.rng.IntN(len(tubes))]
	j := c.any(c.rng)
	if j == nil {
		return one(c.put())
	}
	switch n := c.rng.IntN(100); {
	case n < 30:
		if len(c.live) > 2*backlog || len(c.live) > backlog && c.rng.IntN(4) > 0 {
			return one(c.delete(j))
		}
		return one(c.put())
	case n < 55:
		return one(c.reserve(0, false))
	case n < 60:
		return one(c.reserveJob(j))
	case n < 62:
		return one(c.kickJob(j))
	case n < 63:
		return one(c.kick())
	case n < 65:
		return one(c.delete(j))
	case n < 72:
		return one(c.peek(j))
	case n < 75:
		return one(c.peekAny())
	case n < 80:
		return one(c.use(tube))
	case n < 84:
		c.watched[tube] = true
		return one(c.plain("watch "+tube, wire.Watching))
	case n < 86:
		return one(c.plain("ignore "+tube, wire.Watching, wire.NotIgnored)) // it may be the only one
	case n < 87:
		return one(c.plain(fmt.Sprintf("pause-tube %s %d", tube, c.rng.IntN(2)), wire.Paused, wire.NotFound))
	case n < 95:
		return one(c.look(tube, j))
	}
	return c.nonsense()
}

func (c *client) make(text []byte, wants ...wire.Word) *command {
	return &command{text: text, wants: wants, sent: c.tick(), at: time.Now()}
}

func (c *client) plain(line string, wants ...wire.Word) *command {
	return c.make([]byte(line+"\r\n"), wants...)
}

func (c *client) put() *command {
	c.token++
	pri, delay, ttr := c.pri(), uint32(0), uint32(30+c.rng.IntN(100))
	switch c.rng.IntN(12) {
	case 0:
		delay = uint32(1 + c.rng.IntN(5))
	case 1:
		delay = 3600
	case 2, 3:
		ttr = uint32(c.rng.IntN(3))
	}
	j := &job{token: c.token, tube: c.using, ttr: max(1, ttr), unborn: true, index: -1}
	c.lost[j.token] = j
	to := ready
	if delay > 0 {
		to = delayed
	}
	a := c.tryPri(j, to, pri, time.Duration(delay)*time.Second)
	body := bodyOf(j.token)
	cmd := c.make(wire.AppendPut(nil, pri, delay, ttr, body), wire.Inserted)
	last := c.durable
	cmd.then = func(r *wire.Reply) error {
		switch r.Kind {
		case wire.Inserted:
			if r.ID <= last {
				return fmt.Errorf("ids must grow: there was %d before", last)
			}
			c.count.add("jobs put", 1)
			c.durable = max(c.durable, r.ID)
			j.unborn = false
			delete(c.lost, j.token)
			c.answered(a, r, wire.Inserted)
			return c.name(j, r.ID)
		case wire.InternalError: // it may be there
			c.answered(a, r, wire.Inserted)
		default:
			if j.id != 0 {
				return fmt.Errorf("but it is job %d", j.id)
			}
			c.refused++
			delete(c.lost, j.token)
		}
		return nil
	}
	return cmd
}

func (c *client) pri() uint32 {
	if c.rng.IntN(4) == 0 {
		return c.rng.Uint32()
	}
	return uint32(c.rng.IntN(3))
}

// reserve is one that waits for seconds, or until there is a job.
func (c *client) reserve(seconds int, ever bool) *command {
	text := wire.AppendReserveTimeout(nil, uint32(seconds))
	if ever {
		text = wire.AppendReserve(nil)
	}
	cmd := c.make(text, wire.Reserved, wire.TimedOut, wire.DeadlineSoon)
	cmd.waits = ever
	cmd.then = func(r *wire.Reply) error {
		if r.Kind != wire.Reserved {
			return nil
		}
		j, err := c.seen(r, cmd.sent)
		if err != nil {
			return err
		}
		switch {
		case !c.watched[j.tube]:
			return fmt.Errorf("it is in tube %s, which is not watched", j.tube)
		case j.quiet(cmd.sent) && j.could == buried, j.quiet(cmd.sent) && j.could == delayed && time.Now().Before(j.dueFrom):
			return fmt.Errorf("it was not ready: %v", j)
		}
		return c.hold(j, cmd)
	}
	return cmd
}

func (c *client) reserveJob(j *job) *command {
	cmd := c.make(wire.AppendCommand(nil, &wire.Command{Op: wire.ReserveJob, ID: j.id}), wire.Reserved, wire.NotFound)
	a := c.try(j, ready)
	cmd.then = func(r *wire.Reply) error {
		c.answered(a, r, wire.Reserved)
		if r.Kind != wire.Reserved {
			return nil
		}
		if _, err := c.seen(r, cmd.sent); err != nil {
			return err
		}
		return c.hold(j, cmd)
	}
	return cmd
}

// hold enters that the client has reserved a job.
func (c *client) hold(j *job, cmd *command) error {
	now := time.Now()
	other := j.holder
	if other != nil && !c.cutsOff && j.flying == 0 && j.heldFrom < cmd.sent && now.Before(j.until) {
		return fmt.Errorf("somebody else holds it for %v more: %v", j.until.Sub(now), j)
	}
	c.count.add("jobs reserved", 1)
	if j.could |= ready; j.quiet(cmd.sent) && !j.doubtful {
		j.could = ready
	}
	j.changed = c.tick()
	if c.gone {
		return nil
	}
	j.holder, j.heldFrom, j.until = c, j.changed, cmd.at.Add(time.Duration(j.ttr)*time.Second)
	if !slices.Contains(c.held, j) {
		c.held = append(c.held, j)
	}
	return nil
}

// finish does something with a job that the client holds, or held.
func (c *client) finish(j *job) *command {
	id, pri, delay := j.id, c.pri(), uint32(0)
	var a *attempt
	var text []byte
	var done wire.Word
	keeps := false
	switch n := c.rng.IntN(20); {
	case n < 12:
		text, done, a = wire.AppendDelete(nil, id), wire.Deleted, c.try(j, gone)
	case n < 14:
		text, done, a = wire.AppendBury(nil, id, pri), wire.Buried, c.tryPri(j, buried, pri, 0)
	case n < 16:
		text, done, a = wire.AppendRelease(nil, id, pri, 0), wire.Released, c.tryPri(j, ready, pri, 0)
	case n < 17:
		delay = uint32(1 + c.rng.IntN(3))
		text, done, a = wire.AppendRelease(nil, id, pri, delay), wire.Released, c.tryPri(j, delayed, pri, time.Duration(delay)*time.Second)
	default:
		text, done, a, keeps = wire.AppendTouch(nil, id), wire.Touched, c.try(j, 0), true
	}
	cmd := c.make(text, done, wire.NotFound)
	cmd.then = func(r *wire.Reply) error {
		held := j.holder == c && j.flying == 1 && j.deleted == 0 && time.Now().Before(j.until) && !c.gone
		if keeps {
			j.flying--
		} else if done != wire.Deleted {
			c.answered(a, r, done)
		}
		if r.Kind == wire.NotFound && held {
			return fmt.Errorf("it is held for %v more: %v", time.Until(j.until), j)
		}
		if keeps && r.Kind == wire.Touched {
			if j.holder == c {
				j.until = cmd.at.Add(time.Duration(j.ttr) * time.Second)
			}
			return nil
		}
		if j.holder == c {
			j.holder = nil
		}
		if i := slices.Index(c.held, j); i >= 0 {
			c.held = slices.Delete(c.held, i, i+1)
		}
		if done != wire.Deleted {
			return nil
		}
		return c.deleted(j, a, r)
	}
	return cmd
}

// deleted enters the answer to a delete.
func (c *client) deleted(j *job, a *attempt, r *wire.Reply) error {
	before := j.deleted
	c.answered(a, r, wire.Deleted)
	if r.Kind != wire.Deleted {
		return nil
	}
	c.count.add("jobs deleted", 1)
	if before != 0 {
		return errors.New("it was deleted before")
	}
	return nil
}

func (c *client) delete(j *job) *command {
	cmd := c.make(wire.AppendDelete(nil, j.id), wire.Deleted, wire.NotFound)
	a := c.try(j, gone)
	cmd.then = func(r *wire.Reply) error {
		if r.Kind != wire.NotFound {
			j.holder = nil
		}
		return c.deleted(j, a, r)
	}
	return cmd
}

func (c *client) kickJob(j *job) *command {
	cmd := c.make(wire.AppendCommand(nil, &wire.Command{Op: wire.KickJob, ID: j.id}), wire.Kicked, wire.NotFound)
	a := c.try(j, ready)
	cmd.then = func(r *wire.Reply) error {
		c.answered(a, r, wire.Kicked)
		return nil
	}
	return cmd
}

// kick kicks jobs of the tube that is used, if that is the one for it: of those
// in its tube little is known for a while.
func (c *client) kick() *command {
	tube := c.using
	if tube != "kicked" {
		return c.use("kicked")
	}
	bound := uint32(c.rng.IntN(20))
	cmd := c.make(wire.AppendKick(nil, bound), wire.Kicked)
	c.kicked(tube, 1)
	cmd.then = func(r *wire.Reply) error {
		c.kicked(tube, -1)
		if r.Kind == wire.Kicked && r.N > uint64(bound) {
			return fmt.Errorf("kicked %d", r.N)
		}
		return nil
	}
	return cmd
}

func (c *client) peek(j *job) *command {
	cmd := c.make(wire.AppendPeek(nil, j.id), wire.Found, wire.NotFound)
	cmd.then = func(r *wire.Reply) error {
		if r.Kind == wire.NotFound {
			return j.mayBeGone()
		}
		_, err := c.seen(r, cmd.sent)
		return err
	}
	return cmd
}

// mayBeGone says what is wrong about a job that was not found, if there is anything.
func (j *job) mayBeGone() error {
	if j.could&gone == 0 && !j.unborn {
		return fmt.Errorf("the job is lost: %v", j)
	}
	return nil
}

func (c *client) peekAny() *command {
	verb := []string{"peek-ready", "peek-delayed", "peek-buried"}[c.rng.IntN(3)]
	tube := c.using
	cmd := c.plain(verb, wire.Found, wire.NotFound)
	cmd.then = func(r *wire.Reply) error {
		if r.Kind != wire.Found {
			return nil
		}
		j, err := c.seen(r, cmd.sent)
		if err == nil && j.tube != tube {
			err = fmt.Errorf("it is in tube %s, not in %s", j.tube, tube)
		}
		return err
	}
	return cmd
}

func (c *client) use(tube string) *command {
	c.using = tube
	return c.plain("use "+tube, wire.Using)
}

// look asks for statistics.
func (c *client) look(tube string, j *job) *command {
	switch c.rng.IntN(6) {
	case 0:
		return c.plain("list-tubes", wire.OK)
	case 1:
		return c.plain("list-tubes-watched", wire.OK)
	case 2:
		return c.plain("list-tube-used", wire.Using)
	case 3:
		return c.plain("stats-tube "+tube, wire.OK, wire.NotFound)
	case 4:
		cmd := c.plain("stats", wire.OK)
		cmd.then = func(r *wire.Reply) error {
			_, err := wire.ParseDict(r.Body)
			return err
		}
		return cmd
	}
	cmd := c.plain(fmt.Sprintf("stats-job %d", j.id), wire.OK, wire.NotFound)
	cmd.then = func(r *wire.Reply) error {
		if r.Kind == wire.NotFound {
			return j.mayBeGone()
		}
		got, err := wire.ParseDict(r.Body)
		if err == nil && got["tube"] != j.tube {
			err = fmt.Errorf("it is in tube %s, was put in %s", got["tube"], j.tube)
		}
		return err
	}
	return cmd
}

// nonsense is what broken clients send.
func (c *client) nonsense() []*command {
	switch c.rng.IntN(6) {
	case 0:
		return []*command{c.plain("put 0 0 9", wire.BadFormat)}
	case 1:
		return []*command{c.plain("use "+strings.Repeat("x", 201+c.rng.IntN(1000)), wire.BadFormat)}
	case 2:
		c.refused++
		return []*command{c.plain("put 0 0 9 2\r\nabcd", wire.ExpectedCRLF), c.make(nil, wire.UnknownCommand)}
	case 3:
		size := largest + 1 + c.rng.IntN(100_000)
		return []*command{c.make(slices.Concat(fmt.Appendf(nil, "put 0 0 9 %d\r\n", size), bytes.Repeat([]byte{'x'}, size), []byte("\r\n")), wire.JobTooBig)}
	case 4:
		return []*command{c.plain("delete 18446744073709551615", wire.NotFound)}
	}
	line := make([]byte, 1+c.rng.IntN(20))
	random := rand.New(rand.NewPCG(c.rng.Uint64(), 0))
	for i := range line {
		line[i] = byte(random.IntN(256))
	}
	line[0] = 'X' // no command, and nothing of HTTP
	line = bytes.ReplaceAll(line, []byte("\n"), nil)
	return []*command{c.plain(string(line), wire.UnknownCommand, wire.BadFormat)}
}
