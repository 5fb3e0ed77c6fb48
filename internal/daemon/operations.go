package daemon

import (
	"context"
	"math/rand/v2"
	"net/http"
	"path/filepath"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/api"
	"github.com/beanpole-mq/beanpole/internal/console"
	"github.com/beanpole-mq/beanpole/internal/history"
	"github.com/beanpole-mq/beanpole/internal/server"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// operations is the JSON API. The admin listener and the other members of a cluster use
// it.
type operations struct {
	*api.API
	sessions *console.Sessions
	identify func(*http.Request) (*access.Identity, bool)

	record        context.CancelFunc // stops sampling
	recordingDone chan struct{}
}

// newOperations returns the API of a queue, or nil if no listener and no member
// serves it.
func newOperations(p *plan, q *queue, srv *server.Server, about *serverInfo, pages *adminServer) *operations {
	sec := p.security
	if pages == nil && q.member == nil {
		return nil
	}
	o := &operations{sessions: console.NewSessions(), recordingDone: make(chan struct{})}
	o.identify = o.sessions.Identify(api.Identify(sec.Control))
	forAPI := api.Options{
		Server: srv, Identify: o.identify, Version: p.version, Journal: q.journalStats(), Logger: p.log, Facts: about.Info, LimitOf: about.limitOf,
		CertificateWarnings: sec.certificateWarnings, History: openHistory(p),
	}
	if q.journal != nil {
		forAPI.RewriteJournal = func() { q.journal().Rewrite() }
		forAPI.Backup = q.openBackup
	}
	if m := q.member; m != nil {
		forAPI.Cluster, forAPI.Transfer, forAPI.Leader, forAPI.Installing, forAPI.IdentifyByName = m.control.Status, m.control.Transfer, m.api.leader, m.Installing, sec.RequireIdentityByName
		forAPI.TasksAfter = rand.Uint64N(1<<32) << 16 // #nosec G404 -- ids need not be secret
	}
	o.API = api.New(q.broker, forAPI)
	if m := q.member; m != nil {
		m.api.begin(o.API)
	}
	var ctx context.Context
	ctx, o.record = context.WithCancel(context.Background())
	go func() {
		defer close(o.recordingDone)
		o.Record(ctx)
	}()
	return o
}

// openHistory returns the history in the directory of the journal, or in memory. It does
// not read it.
func openHistory(p *plan) *history.Store {
	o := history.Options{FS: vfs.OS, Limit: p.opt.Journal.History, Log: p.log}
	if dir := p.opt.Journal.Dir; dir != "" {
		o.Dir = filepath.Join(dir, "history")
	}
	return history.New(o)
}

// stop cancels running tasks and stops sampling.
func (o *operations) stop() {
	if o == nil {
		return
	}
	o.Close()
	o.record()
	<-o.recordingDone
}
