package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/admin"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// defaultAdminPort is the port of --admin if it names none.
const defaultAdminPort = "11380"

// adminOptions say what the admin pages are.
type adminOptions struct {
	addr     string // empty: there are none
	tubes    int
	profiles bool
}

// An adminServer serves the admin pages: before the queue is there, that it is not.
type adminServer struct {
	http.Server
	listener net.Listener
	pages    atomic.Pointer[http.Handler]
}

// listenAdmin opens the socket of the admin pages and serves them. Nil if there are
// none.
func (opt *serveOptions) listenAdmin(ctx context.Context, log *slog.Logger, sec *security) (*adminServer, error) {
	if opt.admin.addr == "" {
		return nil, nil
	}
	addr, err := server.ParseAddress(withHost(opt.admin.addr), defaultAdminPort)
	if err != nil {
		return nil, usageError("--admin: %w", err)
	}
	listeners, err := server.Listen(ctx, []server.Address{addr}, opt.unixMode)
	if err != nil {
		return nil, &exitError{exitSocket, fmt.Errorf("--admin: %w%s", err, hint(err))}
	}
	a := &adminServer{listener: listeners[0]}
	var starting http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			fmt.Fprintln(w, "ok")
			return
		}
		http.Error(w, "the server starts: the journal is being read", http.StatusServiceUnavailable)
	})
	a.pages.Store(&starting)
	a.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*a.pages.Load()).ServeHTTP(w, r) })
	a.ReadHeaderTimeout, a.IdleTimeout = 10*time.Second, time.Minute
	a.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	l := a.listener
	if source := sec.certs[opt.guard.tls]; source != nil {
		l = tls.NewListener(l, source.Config())
	}
	go func() {
		if err := a.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the admin pages are not served any more", "err", err)
		}
	}()
	log.Info("serving the admin pages", "address", describe(a.listener.Addr()))
	return a, nil
}

// withHost makes loopback the host of an address that names a port only.
func withHost(addr string) string {
	if strings.HasPrefix(addr, ":") {
		return server.DefaultHost + addr
	}
	return addr
}

// ready puts the pages of a queue in the place of those of the start.
func (a *adminServer) ready(opt *serveOptions, log *slog.Logger, q *queue, srv *server.Server, sec *security) {
	if a == nil {
		return
	}
	o := admin.Options{
		Version: version(), Tubes: cmp.Or(opt.admin.tubes, -1), Profiles: opt.admin.profiles, Logger: log,
		Server: srv.Counts, May: sec.maySeeStats,
	}
	if j := q.journal; j != nil {
		o.Journal = func() admin.JournalStats {
			st := j.Stats()
			return admin.JournalStats{
				Healthy: st.Trouble == nil, Segments: st.Segments, Bytes: st.Bytes, LiveBytes: st.Live,
				RecordsWritten: st.Written, RecordsMigrated: st.Migrated, Syncs: q.syncs.Snapshot(),
			}
		}
		o.NotReady = func() string {
			if trouble := j.Stats().Trouble; trouble != nil {
				return "the journal: " + plain(trouble)
			}
			return ""
		}
	}
	pages := admin.New(q.broker, o)
	a.pages.Store(&pages)
}

// stop ends the pages. Those that are being written are cut off.
func (a *adminServer) stop() {
	if a != nil {
		a.Close()
	}
}

// maySeeStats reports whether who sends a request has the right stats on some tube.
func (s *security) maySeeStats(r *http.Request) bool {
	if !s.on {
		return true
	}
	p := s.policy.Load()
	id := p.Nobody()
	if addr, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		if known, ok := p.ByNetwork(addr.Addr()); ok {
			id = known
		}
	}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		if known, ok := p.ByCertificate(r.TLS.PeerCertificates[0]); ok {
			id = known
		}
	}
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		known, ok := p.ByToken(token)
		if !ok {
			return false
		}
		id = known
	}
	return (id != p.Nobody() || p.Known() == 0) && id.MayAnywhere(access.Stats)
}
