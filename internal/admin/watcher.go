package admin

import (
	"fmt"
	"net/http"
	"time"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// A watcher reads the queue for monitoring. The pages never wait for the disk, because a
// watcher does not wait until its turns are durable. If no turn runs, because a write
// hangs or the server is deposed, the pages report that.
type watcher struct {
	broker *broker.Broker
	opt    *Options
	slots  chan struct{} // slots for concurrent looks; a hanging look keeps its slot
}

const (
	maxLooks = 8 // maximum number of concurrent looks

	// patience is the maximum time that a page waits for a turn.
	patience = time.Second

	// worthSaying is the duration of a sync from which /readyz mentions it. After
	// tooLong, it reports that the queue is not ready, because clients wait for their
	// replies.
	worthSaying = time.Second
	tooLong     = 5 * time.Second
)

// within returns the result of look, or false if it takes longer than patience.
func within[T any](w *watcher, look func() T) (seen T, ok bool) {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case w.slots <- struct{}{}:
	case <-timeout.C:
		return seen, false
	}
	result := make(chan T, 1)
	go func() {
		result <- look()
		<-w.slots
	}()
	select {
	case seen = <-result:
		return seen, true
	case <-timeout.C:
		return seen, false
	}
}

// serveReady serves /readyz.
func (w *watcher) serveReady(rw http.ResponseWriter, _ *http.Request) {
	seen, ok := within(w, w.look)
	if seen == nil {
		seen = &snapshot{why: "no command is executed: this member no longer leads the cluster, and does not follow yet"}
	}
	why, syncing := seen.why, ""
	lasts := w.opt.SyncLasts()
	if lasts >= worthSaying {
		syncing = fmt.Sprintf(": a sync of the journal has been under way for %v", lasts.Round(time.Millisecond))
	}
	switch {
	case !ok:
		why = "no command was executed for a second" + syncing
	case why == "" && lasts >= tooLong:
		why = "the journal" + syncing
	}
	if why != "" {
		http.Error(rw, why, http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintf(rw, "ok%s\n", syncing)
	if w.opt.Warnings != nil {
		seen.health.Certificates = w.opt.Warnings()
	}
	for _, f := range seen.health.Findings(nil) {
		fmt.Fprintf(rw, "warning: %s\n", f.Text)
	}
	if w.opt.Cluster == nil {
		return
	}
	if s, ok := w.opt.Cluster(); ok {
		for _, p := range s.Problems() {
			fmt.Fprintf(rw, "warning: %s\n", p.Text)
		}
	}
}

// notReady returns the reason why clients cannot use the queue, or "" if they can. A
// server at its limit of connections is ready, and so is one that rewrites a damaged
// journal.
func (w *watcher) notReady(e *engine.Engine, journal server.JournalStats) (why string) {
	if e.IsDraining() {
		return "draining: rejecting new jobs"
	}
	if w.opt.NotReady != nil {
		why = w.opt.NotReady()
	}
	if why == "" && journal.Refusal != "" {
		why = "the journal: " + journal.Refusal
	}
	return why
}
