package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/conversation"
)

// boundBuffers limits the buffers of one member of a group.
func boundBuffers(member uint64, most int64) func(uint64, *Options) {
	return func(m uint64, opt *Options) {
		if m == member {
			opt.MaxBuffers = most
		}
	}
}

// The limit for all buffers includes a member's buffers for proxied clients.
func TestBuffersOfFollowerAreBounded(t *testing.T) {
	for name, dial := range map[string]func(*rig, testing.TB) func() *client{"plain": (*rig).dialPlain, "tls": (*rig).dialTLS} {
		t.Run(name, func(t *testing.T) {
			const most, size = 1 << 20, 60_000
			c := startLinkedMembers(t, 2, Options{}, boundBuffers(2, most)) // the leader's clients do not read either
			c.elect(1)
			follower := c.members[1]
			c.members[0].dialMember().do(fmt.Sprintf("put 0 0 9 %d\n%s\n", size, strings.Repeat("x", size)), "INSERTED 1\n")
			dial := dial(follower, t)
			for range 40 {
				unread := dial()
				go func() { // until the server stops reading
					for range 200 {
						if _, err := unread.nc.Write([]byte(strings.Repeat("peek 1\r\n", 100))); err != nil {
							return
						}
					}
				}()
			}
			follower.eventually("some are closed", func() bool { return follower.evicted.Load() > 10 })
			if n := follower.shared.Memory.Held(); n > most {
				t.Errorf("%d bytes are held", n)
			}
		})
	}
}

// The limit includes input of proxied clients that the leader has not yet executed.
func TestBuffersOfStreamsAreBounded(t *testing.T) {
	const most = 1 << 20
	c := startLinkedMembers(t, 2, Options{}, boundBuffers(1, most))
	c.elect(1)
	leader := c.members[0]
	for range 40 {
		waits := c.members[1].dialMember()
		waits.send("reserve\n")
		go waits.nc.Write([]byte(strings.Repeat("use x\r\n", 10_000))) // until it is closed
	}
	leader.eventually("some are closed", func() bool { return leader.evicted.Load() > 10 })
	if n := leader.shared.Memory.Held(); n > most {
		t.Errorf("%d bytes are held", n)
	}
}

// The server buffers no input of pending clients.
func TestBuffersOfPendingClients(t *testing.T) {
	c := startLinkedMembers(t, 1, Options{})
	r := c.members[0]
	for range 40 {
		r.dialMember().send("put 0 0 9 60000\n" + strings.Repeat("x", 50_000))
	}
	r.waitServed(0, 40)
	if n := r.shared.Memory.Held(); n > 0 {
		t.Errorf("%d bytes are held", n)
	}
}

// Bytes that a client has received from its leader no longer count.
func TestProxyCountsHeldBytes(t *testing.T) {
	stream := &endlessStream{pieces: 20, held: 100_000}
	l, clients := newProxyLoop(t, stream)
	s := clients[0]
	for len(s.proxy.replies) == 0 { // fill the client's kernel buffers
		l.step()
	}
	if n := l.srv.shared.Memory.Held(); n < 100_000 {
		t.Errorf("%d bytes are held", n)
	}
	go newClient(t, stream.client).readAll()
	for s.proxy != nil {
		l.step()
	}
	if n := l.srv.shared.Memory.Held(); n != 0 {
		t.Errorf("%d bytes are held after the client has received all", n)
	}
	s.Dismiss(conversation.ErrMemory)
	if l.step(); !s.closing {
		t.Error("a dismissed connection is still open")
	}
}

// A turn handles a large put after its command line. The loop reads the body during that
// turn's sync.
func TestLargePutIsReadDuringSync(t *testing.T) {
	log := &gatedLog{begins: make(chan struct{}, 10), gate: make(chan struct{})}
	r := startLogged(t, Options{Loops: 1, SlowSync: -1, MaxJobSize: 1 << 20}, broker.Options{Log: log})
	c := r.dialTCP()
	c.send(fmt.Sprintf("put 0 0 9 %d\n%s", 1<<20, strings.Repeat("x", 800_000)))
	r.eventually("it is read", func() bool { return r.shared.Memory.Held() > 800_000 })
	close(log.gate)
	c.do(strings.Repeat("x", 1<<20-800_000)+"\n", "INSERTED 1\n")
}
