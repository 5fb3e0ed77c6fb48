package api

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/rights"
)

// An Other is another server that does operations of the API: NewRemote and NewBeanstalkd return one.
type Other interface {
	// do answers a request of somebody who may send it. An error that is no problem says that the server
	// cannot be reached.
	do(r *request, in any) (any, error)

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

// AddServer lets Open lead to another server, by a name that is for people. The API has no path that leads there.
//
// That server sees one client, whoever asks. So it is for those only who may do as much here: to look at it needs stats
// and peek on every tube of this server, to change something all rights. Changes have a line in the log and in the list of
// changes of this server.
func (a *API) AddServer(name string, readOnly bool, server Other) {
	a.others[name] = &otherServer{name: name, readOnly: readOnly, server: server}
}

// needed is what an operation needs at another server: at least to see all here, and more if it changes something.
func (e *otherServer) needed(o *operation) rights.Need {
	if o.changes() {
		return rights.All.On(rights.EveryTube)
	}
	return (o.Needs.Rights | rights.Stats | rights.Peek).On(rights.EveryTube)
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
func (e *otherServer) do(r *request, in any) (any, error) {
	if err := e.away(); err != nil {
		return nil, err
	}
	out, err := e.server.do(r, in)
	if err != nil && admin.StatusOf(err) == 0 {
		if r.ctx.Err() != nil {
			return nil, errGone
		}
		return nil, e.gone(err)
	}
	if me, ok := out.(admin.Me); ok {
		out = e.restrict(me, r)
	}
	return out, err
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
	return problemf(http.StatusBadGateway, "the server %s does not answer: %v", e.name, e.why).After(awayFor)
}

// restrict takes the rights away that the client cannot use there.
func (e *otherServer) restrict(me admin.Me, r *request) admin.Me {
	me.Identity = r.caller.Identity.Name()
	if !e.readOnly && r.caller.Identity.Meets(rights.All.On(rights.EveryTube)) {
		return me
	}
	for _, names := range []*[]string{&me.Anywhere, &me.Everywhere, &me.Tube} {
		*names = slices.DeleteFunc(*names, func(name string) bool { return name != rights.Stats.String() && name != rights.Peek.String() })
	}
	return me
}

// changesAt tells of the changes at another server that were made through this one.
func (r *request) changesAt(name string, in *admin.ListChanges) (admin.Changes, error) {
	page, err := r.listChanges(in)
	page.Changes = slices.DeleteFunc(page.Changes, func(c admin.Change) bool { return fmt.Sprint(c.About["server"]) != name })
	return page, err
}
