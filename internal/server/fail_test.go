package server

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// failingLog is a broker.Log whose Flush fails while err is set. Only turns access err.
type failingLog struct{ err error }

func (l *failingLog) Append([]engine.Change) error { return nil }
func (l *failingLog) Flush() (bool, error)         { return true, l.err }
func (l *failingLog) Sync() error                  { return nil }
func (l *failingLog) Housekeep(int64) int64        { return engine.Never }
func (l *failingLog) Close() error                 { return nil }

// If the log refuses the first job of a kick, the reply is the reason, as for other
// commands. If it refuses a later job, the reply is the number of kicked jobs.
func TestLogRefusesKick(t *testing.T) {
	bubble(t, func(t *testing.T) {
		room, refusal := 1<<20, engine.OutOfMemory
		admit := func(engine.ChangeKind, string, int) engine.Outcome {
			if room--; room < 0 {
				return refusal
			}
			return engine.OK
		}
		r := startEngine(t, Options{}, broker.Options{Log: &failingLog{}}, engine.Options{Logged: true, Admit: admit})
		set := func(n int, o engine.Outcome) {
			r.broker.Call(func(*engine.Engine, int64) { room, refusal = n, o })
		}
		c := r.dial()
		c.do("kick 5\nput 0 99 9 0\n\nput 0 99 9 0\n\n", "KICKED 0\nINSERTED 1\nINSERTED 2\n")
		set(0, engine.OutOfMemory)
		c.do("kick 5\nkick 0\n", "OUT_OF_MEMORY\nKICKED 0\n")
		set(0, engine.Failed)
		c.do("kick 5\n", "INTERNAL_ERROR\n")
		set(1, engine.Failed)
		c.do("kick 5\n", "KICKED 1\n")
		set(9, engine.OK)
		c.do("kick 5\n", "KICKED 1\n")
	})
}

// With Trace the log contains each command and reply, and at level debug each connect and
// disconnect.
func TestTrace(t *testing.T) {
	var out bytes.Buffer
	bubble(t, func(t *testing.T) {
		r := start(t, Options{Trace: true, Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		c := r.dial()
		c.do("use x\n", "USING x\n")
		c.send("quit\n")
		c.wantEnd()
	})
	for _, want := range []string{"msg=connected client=mem", "msg=command client=mem verb=use", "msg=reply client=mem reply=\"USING x\"", "msg=disconnected client=mem reason=quit"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("not in the log: %s\n%s", want, &out)
		}
	}
}

// The log shows the client, tube and size of an invalid put.
func TestRefusedPutsAreLogged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log safeBuffer
		r := start(t, Options{MaxJobSize: 10, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		r.dial().do("use mail\nput 0 0 9 12\n0123456789AB\nput 0 0 9 3\n12345\nput 0 x\n",
			"USING mail\nJOB_TOO_BIG\nEXPECTED_CRLF\nUNKNOWN_COMMAND\nBAD_FORMAT\n")
		for _, want := range []string{"JOB_TOO_BIG client=mem identity=\"\" tube=mail bytes=12", "EXPECTED_CRLF client=mem identity=\"\" tube=mail bytes=3", "BAD_FORMAT client=mem identity=\"\" tube=mail\n"} {
			if !strings.Contains(log.String(), `level=WARN msg="a put was refused" reply=`+want) {
				t.Errorf("the log has no line %s:\n%s", want, log.String())
			}
		}
	})
}
