package queue

import (
	"bytes"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/beanpoletest"
	"github.com/beanpole-mq/beanpole/internal/cli/kit"
)

// A job whose time to run ends while it is put again, and which a worker takes then, stays
// with that worker; only if another one has its copy by then there are two of it, which is said.
func TestMoveLate(t *testing.T) {
	for _, taken := range []bool{false, true} {
		srv := beanpoletest.NewServer(t)
		dial := func() *client.Conn {
			c, err := client.Dial(t.Context(), srv.Addr, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			return c
		}
		c, worker, other := dial(), dial(), dial()
		ids, err := c.PutMany(t.Context(), []client.NewJob{{Tube: "from", Body: []byte("late")}, {Tube: "from"}})
		if err != nil {
			t.Fatal(err)
		}
		stats, err := c.StatsJobMany(t.Context(), ids)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := worker.ReserveJob(t.Context(), ids[0]); err != nil {
			t.Fatal(err)
		}
		got := make(chan error, 1)
		if taken {
			if err := other.WatchOnly(t.Context(), "to"); err != nil {
				t.Fatal(err)
			}
			go func() {
				_, err := other.Reserve(t.Context())
				got <- err
			}()
			for waiting := uint64(0); waiting == 0; {
				st, err := c.Stats(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				waiting = st.Waiting
			}
		}
		var notes bytes.Buffer
		m := &mover{session: &session{Session: kit.Session{Err: &notes}}, conn: c, from: "from", to: "to"}
		jobs := []found{{JobStats: stats[0], body: []byte("late")}, {JobStats: stats[1]}}
		if err := m.place(t.Context(), jobs); err != nil {
			t.Fatal(err)
		}
		if taken {
			if err := <-got; err != nil {
				t.Fatal(err)
			}
		}
		st, err := c.StatsTube(t.Context(), "to")
		if err != nil {
			t.Fatal(err)
		}
		if st.JobsReady != 1 || m.moved != 1 || strings.Contains(notes.String(), "1 job in both tubes") != taken {
			t.Errorf("%d jobs are ready there, %d moved: %q", st.JobsReady, m.moved, notes.String())
		}
	}
}
