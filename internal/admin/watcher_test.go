package admin

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A hangingLog hangs in a write or in a sync until it is released.
type hangingLog struct{ write, sync chan struct{} }

func (l *hangingLog) Append([]engine.Change) error { return nil }

func (l *hangingLog) Flush() (bool, error) {
	<-l.write
	return false, nil
}

func (l *hangingLog) Sync() error {
	<-l.sync
	return nil
}

func (l *hangingLog) Housekeep(int64) int64 { return engine.Never }

func (l *hangingLog) Close() error { return nil }

// The health pages do not wait for the disk. They report the duration of a hanging sync,
// and later that the queue is unusable. If a turn hangs, they report that.
func TestPagesDoNotWaitForTheDisk(t *testing.T) {
	for _, name := range []string{"a sync", "a write"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				closed, hangs := make(chan struct{}), make(chan struct{})
				close(closed)
				seesQueue := name == "a sync"
				log := &hangingLog{write: hangs, sync: closed}
				if seesQueue {
					log = &hangingLog{write: closed, sync: hangs}
				}
				start := time.Now()
				b := broker.New(engine.New(engine.Options{Logged: true}), broker.Options{Log: log})
				opt := everything()
				opt.SyncLasts = func() time.Duration { return time.Since(start) }
				h := New(b, opt)
				put := make(chan error, 1)
				go func() {
					put <- b.Call(func(e *engine.Engine, now int64) {
						e.PutInto(now, []byte("mail"), engine.Spec{TTR: 1}, nil)
					})
				}()
				synctest.Wait()
				want := func(code int, text, ready string) {
					t.Helper()
					got, body := get(t, h, "/readyz", "")
					if first, warnings, _ := strings.Cut(body, "\n"); got != code || first != text || strings.Contains(warnings, "warning: member 41 at  must join again") != (code == 200) {
						t.Errorf("/readyz: %d %q, want %d %q", got, body, code, text)
					}
					_, body = get(t, h, "/metrics", "")
					if got := after(body, "\nbeanpole_ready "); got != ready {
						t.Errorf("beanpole_ready is %s, want %s", got, ready)
					}
					if lasts := after(body, "\nbeanpole_journal_sync_under_way_seconds "); lasts == "" || lasts == "0" && time.Since(start) > 0 {
						t.Errorf("beanpole_journal_sync_under_way_seconds is %q", lasts)
					}
					if strings.Contains(body, "\nbeanpole_jobs{") != seesQueue {
						t.Errorf("the metrics include the queue: %v", !seesQueue)
					}
				}
				if seesQueue {
					want(200, "ok", "1")
					time.Sleep(2 * time.Second) // of the test's own clock
					want(200, "ok: a sync of the journal has been under way for 2s", "1")
					time.Sleep(10 * time.Second)
					want(503, "the journal: a sync of the journal has been under way for 12s", "0")
				} else {
					want(503, "no command was executed for a second: a sync of the journal has been under way for 1s", "0")
					for range 2 * maxLooks { // the number of hanging reads is limited
						get(t, h, "/readyz", "")
					}
				}
				close(hangs)
				if err := <-put; err != nil {
					t.Error(err)
				}
				b.Close()
				synctest.Wait()
			})
		})
	}
}

// A deposedLog is the Log of a server that can no longer make changes.
type deposedLog struct{ hangingLog }

func (*deposedLog) Flush() (bool, error) { return false, broker.ErrDeposed }

// While the server is deposed, the health pages omit the queue and report that it is
// unusable.
func TestPagesWhileDeposed(t *testing.T) {
	b := broker.New(engine.New(engine.Options{Logged: true}), broker.Options{Log: new(deposedLog)})
	defer b.Close()
	h := New(b, everything())
	get(t, h, "/readyz", "") // the server notices that it is deposed
	if code, body := get(t, h, "/readyz", ""); code != 503 || !strings.Contains(body, "no longer leads the cluster") {
		t.Errorf("/readyz: %d %q", code, body)
	}
	_, body := get(t, h, "/metrics", "")
	if after(body, "\nbeanpole_ready ") != "0" || strings.Contains(body, "\nbeanpole_jobs{") || strings.Contains(body, "\nbeanpole_tube") {
		t.Errorf("the metrics include the queue:\n%s", body)
	}
}

// /readyz contains a warning if a limit refuses puts, but reports the queue as usable.
func TestRefusalsAreWarnings(t *testing.T) {
	b := newQueue(t)
	b.Call(func(e *engine.Engine, now int64) {
		e.SetLimits(engine.Limits{Memory: e.Memory()/2 + 1})
		e.PutInto(now, []byte("mail"), engine.Spec{TTR: 9}, make([]byte, 1<<20))
	})
	code, body := get(t, New(b, Options{}), "/readyz", "")
	if code != 200 || !strings.Contains(body, "\nwarning: a limit refused commands in the last 10 min: max-memory\n") {
		t.Errorf("%d %s", code, body)
	}
}
