package soak

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

const (
	// patience is how long anything may take that must happen, faults included.
	patience = time.Minute

	// waitsFor is how long a client waits in a reserve before it hangs up.
	waitsFor = 3 * time.Second
)

// A client is one connection.
type client struct {
	*account
	rng  *rand.Rand
	nc   net.Conn
	in   []byte // read and not parsed
	gone bool   // closed, or about to be

	using   string
	watched map[string]bool // it may watch these
	held    []*job          // it may hold these
}

// A command is one that was sent, or will be.
type command struct {
	text  []byte
	wants []wire.Word               // that it may be answered
	then  func(r *wire.Reply) error // with the account locked; nil: nothing
	waits bool                      // for a job, perhaps for ever
	sent  uint64                    // clock
	at    time.Time                 // when it was sent
}

// errWrong is wrapped by what the server may not do.
var errWrong = errors.New("")

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w%w", errWrong, fmt.Errorf(format, args...))
}

// visit is one connection from its beginning to its end. An error that is not
// wrong is that of the connection.
func visit(l *account, rng *rand.Rand, addr net.Addr, stop <-chan struct{}) error {
	nc, err := net.Dial(addr.Network(), addr.String())
	if err != nil {
		l.count.add("connections refused", 1)
		time.Sleep(time.Duration(1+rng.IntN(20)) * time.Millisecond)
		return err
	}
	c := &client{account: l, rng: rng, nc: nc, using: "default", watched: map[string]bool{"default": true}}
	defer c.close()
	l.count.add("connections", 1)
	for range 1 + rng.IntN(60) {
		select {
		case <-stop:
			return nil
		case <-time.After(time.Duration(rng.ExpFloat64() * float64(4*time.Millisecond))):
		}
		if err := c.talk(c.batch()); err != nil {
			return err
		}
	}
	return c.leave()
}

// close ends the connection. What it held may be given to others from now on.
func (c *client) close() {
	c.mu.Lock()
	c.letGo()
	c.mu.Unlock()
	c.nc.Close()
}

func (c *client) letGo() {
	c.gone = true
	for _, j := range c.held {
		if j.holder == c {
			j.holder = nil
		}
	}
	c.held = nil
}

// talk sends commands and reads their replies, sometimes slowly.
func (c *client) talk(cmds []*command) error {
	var text []byte
	for _, cmd := range cmds {
		text = append(text, cmd.text...)
	}
	sent := make(chan error, 1)
	go func() { sent <- c.write(text) }()
	if c.rng.IntN(30) == 0 {
		time.Sleep(time.Duration(c.rng.IntN(1000)) * time.Millisecond)
	}
	for _, cmd := range cmds {
		var r wire.Reply
		if err := c.read(&r, cmd.waits); err != nil {
			return err
		}
		if err := c.take(cmd, &r); err != nil {
			return err
		}
	}
	return <-sent
}

// write sends text in one piece, or in several.
func (c *client) write(text []byte) error {
	cuts := rand.New(rand.NewPCG(uint64(len(text)), 0))
	c.nc.SetWriteDeadline(time.Now().Add(patience))
	for len(text) > 0 {
		n := len(text)
		if cuts.IntN(4) == 0 {
			n = 1 + cuts.IntN(n)
		}
		if _, err := c.nc.Write(text[:n]); err != nil {
			return c.silent(err, "does not read what is sent")
		}
		text = text[n:]
	}
	return nil
}

// read reads one reply.
func (c *client) read(r *wire.Reply, waits bool) error {
	limit := time.Now().Add(patience)
	c.nc.SetReadDeadline(limit)
	if waits {
		c.nc.SetReadDeadline(time.Now().Add(waitsFor))
	}
	for {
		n, err := wire.ParseReply(c.in, r)
		if err != nil {
			return wrong("%w", err)
		}
		if n > 0 {
			c.in = c.in[n:]
			return nil
		}
		c.in = slices.Grow(c.in, 4096)
		n, err = c.nc.Read(c.in[len(c.in):cap(c.in)])
		c.in = c.in[:len(c.in)+n]
		if err != nil && n == 0 {
			if waits {
				return err
			}
			return c.silent(err, "does not answer")
		}
	}
}

// silent makes a timeout what the server may not do.
func (c *client) silent(err error, what string) error {
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return wrong("the server %s for %v", what, patience)
	}
	return err
}

// take checks a reply and enters it.
func (c *client) take(cmd *command, r *wire.Reply) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count.add("commands answered", 1)
	if !slices.Contains(cmd.wants, r.Kind) {
		allowed := false
		switch r.Kind {
		case wire.InternalError, wire.OutOfMemory:
			allowed = c.diskFails
			c.count.add("answered "+r.Kind.String(), 1)
		case wire.Draining:
			allowed = c.draining
			c.count.add("answered "+r.Kind.String(), 1)
		}
		if !allowed {
			return wrong("%.60q is answered %v", cmd.text, r.Kind)
		}
	}
	if cmd.then == nil {
		return nil
	}
	if err := cmd.then(r); err != nil {
		return wrong("%.60q is answered %v %d: %w", cmd.text, r.Kind, r.ID, err)
	}
	return nil
}

// leave ends the connection in one of the ways in which clients do.
func (c *client) leave() error {
	switch c.rng.IntN(5) {
	case 0: // in the middle of a command
		c.mu.Lock()
		text := c.put().text
		c.mu.Unlock()
		c.write(text[:c.rng.IntN(len(text))])
		return nil
	case 1: // without a look at the replies
		var text []byte
		for _, cmd := range c.batch() {
			text = append(text, cmd.text...)
		}
		go c.write(text)
		time.Sleep(time.Duration(c.rng.IntN(3)) * time.Millisecond)
		return nil
	case 2: // politely
		c.mu.Lock()
		c.letGo()
		c.mu.Unlock()
		c.write([]byte("quit\r\n"))
	case 3: // by a half-close, which ends a wait
		cmds := c.batch()
		c.mu.Lock()
		cmds = append(cmds, c.reserve(0, true))
		c.letGo()
		c.mu.Unlock()
		var text []byte
		for _, cmd := range cmds {
			text = append(text, cmd.text...)
			cmd.waits = false
		}
		if err := c.write(text); err != nil {
			return err
		}
		c.nc.(interface{ CloseWrite() error }).CloseWrite()
		for _, cmd := range cmds {
			var r wire.Reply
			if err := c.read(&r, false); err != nil {
				return err
			}
			if err := c.take(cmd, &r); err != nil {
				return err
			}
		}
	default: // at once
		return nil
	}
	var r wire.Reply
	if err := c.read(&r, false); err == nil {
		return wrong("a reply to nothing: %v", r.Kind)
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
