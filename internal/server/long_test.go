package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

const manyKicked = 20_000

// putLarge puts job 1, with a body of size bytes, into the tube default.
func (r *rig) putLarge(size int) {
	r.broker.Call(func(e *engine.Engine, now int64) {
		e.PutInto(now, []byte("default"), engine.Spec{TTR: 3600}, make([]byte, size))
	})
}

// buryMany creates buried jobs in the tube default.
func (r *rig) buryMany() {
	r.broker.Call(func(e *engine.Engine, now int64) {
		s := e.Open(nil)
		for range manyKicked {
			id, _ := e.Put(now, s, engine.Spec{TTR: 3600}, nil)
			e.ReserveJob(now, s, id)
			e.Bury(s, id, 0)
		}
	})
}

// The work of a turn is bounded, however many commands a client sends at once.
func TestTurnsAreBoundedByWork(t *testing.T) {
	log := &countingLog{}
	r := startLogged(t, Options{}, broker.Options{Log: log})
	r.buryMany()
	c := r.dialTCP()
	r.broker.Call(func(*engine.Engine, int64) { log.most = 0 })
	const kicks = 200 // each fits one turn
	c.do(strings.Repeat(fmt.Sprintf("kick %d\n", manyKicked/kicks), kicks),
		strings.Repeat(fmt.Sprintf("KICKED %d\n", manyKicked/kicks), kicks))
	most := 0
	r.broker.Call(func(*engine.Engine, int64) { most = log.most })
	if most < manyKicked/kicks || most > manyKicked/2 {
		t.Errorf("of %d jobs a turn kicked %d", manyKicked, most)
	}
}

// countingLog counts the turns with changes, and the maximum number of changes in a turn.
type countingLog struct {
	failingLog
	changed, most int
}

func (l *countingLog) Append(c []engine.Change) error {
	l.changed++
	l.most = max(l.most, len(c))
	return nil
}
