package load

import (
	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A byCommand has the latencies of one session, each kind of command by itself.
// Nil, the usual one, records nothing. Owned by its session.
type byCommand map[wire.Op]*hdrhistogram.Histogram

// record is given the command and the time it took in ns.
func (b byCommand) record(op wire.Op, latency int64) {
	if b == nil {
		return
	}
	h := b[op]
	if h == nil {
		h = newHistogram()
		b[op] = h
	}
	// The value is within the histogram's range, so there is no error.
	_ = h.RecordValue(min(max(latency, 0), maxLatency))
}

// mergeInto adds what b has to total.
func (b byCommand) mergeInto(total byCommand) {
	for op, h := range b {
		if total[op] == nil {
			total[op] = newHistogram()
		}
		total[op].Merge(h)
	}
}

// latencies returns the result by the names of the commands, nil if there is none.
func (b byCommand) latencies() map[string]Latency {
	if len(b) == 0 {
		return nil
	}
	m := make(map[string]Latency, len(b))
	for op, h := range b {
		m[op.String()] = latencyOf(h)
	}
	return m
}
