package api

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/rights"
)

// An Other is another server that does operations of the API: NewRemote and NewBeanstalkd return one.
type Other interface {
	// do answers a request of somebody who may send it. An error that is no problem says that the server
	// cannot be reached.
	do(r *request) (reply, error)

	close()
}

// otherServer is the API of another server.
type otherServer struct {
	name     string
	readOnly bool
	server   Other

	mu    sync.Mutex
	until time.Time // nobody is sent there before
	why   error
}

// Elsewhere returns the API of another server, whose name is for people. It is another handler than the API's
// own: the API has no path that leads there.
//
// That server sees one client, whoever asks. So it is for those only who may do as much here: to look at it needs stats
// and peek on every tube of this server, to change something all rights. Changes have a line in the log and in the list of
// changes of this server.
func (a *API) Elsewhere(name string, readOnly bool, server Other) http.Handler {
	e := &otherServer{name: name, readOnly: readOnly, server: server}
	a.others = append(a.others, e)
	mux := http.NewServeMux()
	for i := range operations {
		op := &operations[i]
		mux.Handle(op.pattern(), a.handler(op, e))
	}
	mux.Handle("/", Problem(http.StatusNotFound, "there is no such operation"))
	return mux
}

// needed is what an operation needs at another server: at least to see all here, and more if it changes something.
func (e *otherServer) needed(op *operation) rights.Need {
	if op.changes() {
		return rights.All.On(rights.EveryTube)
	}
	return (op.need.Rights | rights.Stats | rights.Peek).On(rights.EveryTube)
}

// permitted asks for the rights here.
func (e *otherServer) permitted(r *request) error {
	if r.op.changes() && e.readOnly {
		return problemf(http.StatusForbidden, "the server %s can only be looked at here: the configuration has read-only for it", e.name)
	}
	return r.permittedOn(e.needed(r.op), "every tube of this server, for it is about another one")
}

const (
	// otherPatience is how long another server may take to answer, but for what takes as long as there are jobs.
	otherPatience = 5 * time.Second
	// dialPatience is how long it may take to connect to it.
	dialPatience = 2 * time.Second
	// awayFor is for how long a server that did not answer is not asked again: the parts of a page shall not wait one after the other.
	awayFor = 3 * time.Second
)

// do lets the other server answer, unless it was away just now.
func (e *otherServer) do(r *request) (reply, error) {
	if err := e.away(); err != nil {
		return reply{}, err
	}
	rep, err := e.server.do(r)
	if _, ok := errors.AsType[*problem](err); err != nil && !ok {
		if r.http.Context().Err() != nil {
			return rep, errGone
		}
		return rep, e.gone(err)
	}
	if me, ok := rep.body.(*Me); ok {
		e.restrict(me, r)
	}
	return rep, err
}

// away returns a problem if the server did not answer just now.
func (e *otherServer) away() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if time.Now().Before(e.until) {
		return e.problem()
	}
	return nil
}

// gone notes that the server did not answer.
func (e *otherServer) gone(why error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.until, e.why = time.Now().Add(awayFor), why
	return e.problem()
}

func (e *otherServer) problem() error {
	p := problemf(http.StatusBadGateway, "the server %s does not answer: %v", e.name, e.why)
	p.retryAfter = awayFor
	return p
}

// restrict takes the rights away that the client cannot use there.
func (e *otherServer) restrict(me *Me, r *request) {
	me.Identity = r.who.Name()
	if !e.readOnly && r.who.Meets(rights.All.On(rights.EveryTube)) {
		return
	}
	for _, names := range []*[]string{&me.Anywhere, &me.Everywhere, &me.Tube} {
		*names = slices.DeleteFunc(*names, func(name string) bool { return name != rights.Stats.String() && name != rights.Peek.String() })
	}
}

// changesAt tells of the changes at another server that were made through this one.
func (r *request) changesAt(name string) (reply, error) {
	rep, err := listChanges(r)
	if page, ok := rep.body.(Changes); ok {
		page.Changes = slices.DeleteFunc(page.Changes, func(c Change) bool { return fmt.Sprint(c.About["server"]) != name })
		rep.body = page
	}
	return rep, err
}
