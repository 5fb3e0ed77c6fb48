package api

import (
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A visit is one or several turns that belong together. What one of them finds, such as a view of the jobs of a tube, means
// something to its engine only. So the visit is over when the broker has another one.
type visit struct {
	engine *engine.Engine // of the first turn; nil: there was none yet
}

// turn calls f in a turn, unless the visit is over or the broker is deposed. The error is that of [broker.Broker.Call].
func (v *visit) turn(b *broker.Broker, f func(e *engine.Engine, now int64)) (called bool, err error) {
	err = b.Call(func(e *engine.Engine, now int64) {
		if v.engine == nil {
			v.engine = e
		}
		if called = e == v.engine; called {
			f(e, now)
		}
	})
	return called, err
}
