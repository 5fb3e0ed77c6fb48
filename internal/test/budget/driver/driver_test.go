package main

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/seeds"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// allocations contains the number of allocations that an operation can make in the steady
// state, in a whole turn from the parser to the journal. The default is 0.
var allocations = map[string]float64{
	"another-of-10000-tubes":                 1, // the link between the session and the tube
	"reserve-bury-kick":                      1, // a kick, which can take several turns
	"journal-reserve-bury-kick":              1,
	"caps-want":                              1, // the connection's list of wanted fields
	"put-reserve-batch-delete-batch":         2, // the deletion, which can take several turns, and its ids
	"journal-put-reserve-batch-delete-batch": 2,

	"replay": -1, // no limit, because it builds everything each time
}

// Each scenario works, and makes no allocations except those listed above.
func TestAllocations(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			q := newQueue(t.TempDir(), s.segment)
			defer q.Close()
			operation := s.prepare(q)
			for range min(s.operations, 12000) { // until the buffers have grown
				operation()
			}
			budget := allocations[s.name]
			if budget < 0 || seeds.Race {
				return
			}
			if n := testing.AllocsPerRun(1000, operation); n > budget {
				t.Errorf("%v allocations in an operation, want at most %v", n, budget)
			}
		})
	}
}

// A script's commands for a job equal those that a client would send.
func TestScript(t *testing.T) {
	write := func(dst []byte, id uint64, tube string) []byte {
		dst = wire.AppendCommand(dst, &wire.Command{Op: wire.Use, Tube: []byte(tube)})
		dst = wire.AppendCommand(dst, &wire.Command{Op: wire.Release, ID: id, Pri: 1111111111})
		return wire.AppendCommand(dst, &wire.Command{Op: wire.Delete, ID: id})
	}
	s := newScript(write)
	for _, id := range []uint64{firstID, firstID + 987654321, 2222222222} {
		want := write(nil, id, tubeName(54321))
		if got := s.with(id, 54321); !bytes.Equal(got, want) {
			t.Errorf("script is %q, want %q", got, want)
		}
	}
}

func TestUnknownScenario(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	if err := run("no such", 1, t.TempDir()); err == nil || !strings.Contains(err.Error(), "no such") {
		t.Errorf("run: %v", err)
	}
}

// The driver does not count a failed command, or a command after a waiting reserve, as
// successful.
func TestFailuresAreDetected(t *testing.T) {
	for name, send := range map[string]func(*client){
		"not found": func(c *client) { c.send(wire.AppendCommand(nil, &wire.Command{Op: wire.Delete, ID: 1})) },
		"waiting": func(c *client) {
			c.send(wire.AppendCommand(nil, &wire.Command{Op: wire.Reserve}))
			c.send(wire.AppendCommand(nil, &wire.Command{Op: wire.Reserve}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueue(t.TempDir(), memory)
			defer q.Close()
			defer func() {
				if recover() == nil {
					t.Error("the failure was not reported")
				}
			}()
			send(newClient(q))
		})
	}
}
