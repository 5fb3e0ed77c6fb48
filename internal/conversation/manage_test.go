package conversation

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/rights"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// The names of states are the same in wire and engine.
func TestStates(t *testing.T) {
	for s, state := range statesOf {
		if s := wire.State(s); s != wire.AnyState && s.String() != state.String() {
			t.Errorf("%v is %v", s, state)
		}
	}
}

// flush-tube and move-jobs get one reply after any number of turns. If one of them is not
// durable, the reply is an error.
func TestSweepsContinue(t *testing.T) {
	const jobs = 2000
	for _, tc := range []struct{ command, want, left string }{
		{"flush-tube default", fmt.Sprint("FLUSHED ", 2*jobs), "0 ready, 0 buried"},
		{"flush-tube default buried", fmt.Sprint("FLUSHED ", jobs), "2000 ready, 0 buried"},
		{"flush-tube default ready 1500", "FLUSHED 1500", "500 ready, 2000 buried"},
		{"move-jobs default other ready", fmt.Sprint("MOVED ", jobs), "0 ready, 2000 buried"},
		{"move-jobs default other buried 1700", "MOVED 1700", "2000 ready, 300 buried"},
	} {
		for _, failing := range []error{nil, errDisk} {
			d := newDriver(t)
			s := d.eng.Open(nil)
			for range jobs {
				d.eng.Put(d.now, s, engine.Spec{TTR: 3600}, nil)
				id, _ := d.eng.Put(d.now, s, engine.Spec{TTR: 3600}, nil)
				d.eng.ReserveJob(d.now, s, id)
				d.eng.Bury(s, id, 0)
			}
			g := d.connect()
			g.Receive(d.batch, d.now, []byte(tc.command+"\r\nuse x\r\n"))
			d.now = d.batch.Apply(d.eng, d.now+1)
			d.batch.TurnOver()
			d.batch.Settle(failing)
			d.batch.Reset()
			g.wantState(Ready)
			g.proceed()
			if failing == nil {
				g.want(tc.want + "\nUSING x\n")
			} else {
				g.want("INTERNAL_ERROR\nUSING x\n")
			}
			st, _ := d.eng.TubeStats(d.now, []byte("default"))
			if left := fmt.Sprintf("%d ready, %d buried", st.Ready, st.Buried); left != tc.left {
				t.Errorf("%s leaves %s, want %s", tc.command, left, tc.left)
			}
		}
	}
}

// A long list does not depend on the log and succeeds if the log fails.
func TestListContinuesWithoutLog(t *testing.T) {
	d := newDriver(t)
	s := d.eng.Open(nil)
	for range 2000 {
		d.eng.Put(d.now, s, engine.Spec{TTR: 3600}, nil)
	}
	g := d.connect()
	d.failing = errDisk
	g.send("list-jobs default ready 1000\n")
	if n := bytes.Count(g.got.Bytes(), []byte("\n- id: ")); n != 1000 {
		t.Errorf("%d jobs", n)
	}
}

// A sweep stops when its client disconnects.
func TestSweepEndsWithItsClient(t *testing.T) {
	d := newDriver(t)
	s := d.eng.Open(nil)
	for range 2000 {
		d.eng.Put(d.now, s, engine.Spec{TTR: 3600}, nil)
	}
	g := d.connect()
	g.Receive(d.batch, d.now, []byte("flush-tube default\r\n"))
	d.now = d.batch.Apply(d.eng, d.now+1)
	d.batch.TurnOver()
	d.batch.Settle(nil)
	d.batch.Reset()
	g.end()
	if left := d.eng.Stats().Ready; left == 0 || left == 2000 {
		t.Errorf("%d jobs are left", left)
	}
}

// A client without the manage right on both tubes cannot move jobs between them.
func TestMoveNeedsBothTubes(t *testing.T) {
	p := newAdmission(newPolicy(t, []access.RuleConfig{{Identities: []string{"a"}, Tubes: []string{"mine*"}, Rights: rights.All}}, "a"))
	g := newDriver(t).admitted(p)
	g.send("auth " + tokenOf("a") + "\nuse mine\nmove-jobs mine mine2 ready\nmove-jobs mine other ready\nmove-jobs other mine ready\nlist-jobs other ready\nflush-tube other\n")
	g.want("AUTHENTICATED\nUSING mine\nMOVED 0\n" + strings.Repeat("UNAUTHORIZED\n", 4))
	g.end()
}
