package console

import (
	"cmp"
	"errors"
	"hash/fnv"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// A page is what a template shows. Its exported fields and methods are for templates.
type page struct {
	template string
	status   int

	Title   string
	Section string // that of the navigation
	Curl    string // what asks the API for the same
	Data    any
	View    string // the URL that shows the same again, also when the queue has changed; empty: Path

	// Filled in by fill.
	*site
	Version, Theme, Path      string
	Sites                     []*site // that there are, if there are several that the user may see
	Assets                    map[string]string
	Identity                  string
	CanLogOut, ReadOnly, Open bool
	Note                      *note
	Going                     []taskRow // the tasks of the note
	Server                    *admin.Stats
	Now                       time.Time
	Me                        *admin.Me

	file   func(w http.ResponseWriter) // writes it if it is none of HTML, but a file
	values *liveValues                 // nil: nobody wants them
	shape  []string                    // of the rows; see Row
}

// newPage returns a page that is in order.
func newPage(template, title, section string, data any) *page {
	return &page{template: template, status: http.StatusOK, Title: title, Section: section, Data: data}
}

// fill adds what every page has.
func (p *page) fill(r *request) {
	o := &r.console.opt
	p.site, p.Version, p.Theme, p.Path = r.site, o.Version, themeOf(r.Request), r.URL.RequestURI()
	p.View = cmp.Or(p.View, p.Path)
	p.Assets, p.ReadOnly, p.Now = r.console.assets.urls, r.isReadOnly(), time.Now().UTC()
	p.CanLogOut = o.Sessions.has(r.Request)
	if r.who == nil {
		return
	}
	p.Identity = r.who.Name()
	p.Open = p.Identity == "" && r.who.Unrestricted()
	p.addNote(r)
	if p.Server == nil {
		if st, err := r.api().GetStats(r.Context()); err == nil {
			p.Server = &st
		}
	}
	if p.Me == nil {
		p.Me = r.meOn(r.PathValue("tube"))
	}
	if r.seesOthers(p.Me) {
		p.Sites = r.console.sites
	}
}

// addNote adds what was done, and how far that is which goes on.
func (p *page) addNote(r *request) {
	word := r.URL.Query().Get("note")
	if p.Note = r.console.notes.take(word); p.Note == nil {
		return
	}
	if !strings.Contains(p.View, "note=") {
		p.View = withQuery(p.View, "note", word)
	}
	for _, id := range p.Note.Tasks {
		if t, err := r.api().GetTask(r.Context(), &admin.GetTask{OfTask: admin.OfTask{Task: id}}); err == nil {
			p.Going = append(p.Going, newTaskRow(t))
			p.shape = append(p.shape, t.Status)
		}
	}
}

// IsLive reports whether something on the page changes by itself. A server that does not answer is asked again.
func (p *page) IsLive() bool {
	return p.status == http.StatusBadGateway || slices.Contains(livePages, p.template)
}

// May reports whether the user has a right on some tube, and the console lets it be used.
func (p *page) May(right string) bool {
	return slices.Contains(p.Me.Anywhere, right) && p.mayChange(right)
}

// MayEverywhere reports the same of every tube.
func (p *page) MayEverywhere(right string) bool {
	return slices.Contains(p.Me.Everywhere, right) && p.mayChange(right)
}

// MayHere reports the same of the tube that the page is about.
func (p *page) MayHere(right string) bool {
	return slices.Contains(p.Me.Tube, right) && p.mayChange(right)
}

func (p *page) mayChange(right string) bool {
	return !p.ReadOnly || right == "stats" || right == "peek"
}

// meOn returns who the user is, with its rights on a tube.
func (r *request) meOn(tube string) *admin.Me {
	me, _ := r.api().GetMe(r.Context(), &admin.GetMe{Tube: tube}) // without an answer there is no right
	return &me
}

// liveValues are the texts of a page that may change, by their ids.
type liveValues struct {
	Texts map[string]value  `json:"v,omitempty"`
	Lines map[string]string `json:"d,omitempty"` // of charts: the attribute d of a path
	Shape string            `json:"s,omitempty"` // differs when there are other rows, or in another order
}

// A value is a text with the class of its element.
type value struct {
	Text  string `json:"t"`
	Class string `json:"c"`
}

// A Spot is a place of a page whose text may change.
type Spot struct{ ID, Text, Class string }

// Live marks a text that may change.
func (p *page) Live(id, text, class string) Spot {
	if p.values != nil {
		p.values.Texts[id] = value{text, class}
	}
	return Spot{id, text, class}
}

// A Path is a line of a chart.
type Path struct{ ID, D string }

// Line marks a line of a chart that may change.
func (p *page) Line(id, d string) Path {
	if p.values != nil {
		p.values.Lines[id] = d
	}
	return Path{id, d}
}

// Sparked marks a small chart that may change.
func (p *page) Sparked(s *spark) *spark {
	p.Line(s.ID, s.Line)
	p.Line(s.ID+"-area", s.Area)
	return s
}

// Row returns a short id for the row of something, and notes that there is one.
func (p *page) Row(name string) string {
	id := rowID(name)
	p.shape = append(p.shape, id)
	return id
}

func rowID(name string) string {
	h := fnv.New64a()
	h.Write([]byte(name))
	return "r" + strconv.FormatUint(h.Sum64(), 36)
}

// Shape returns what differs when the page has other rows, or in another order.
func (p *page) Shape() string {
	h := fnv.New64a()
	for _, id := range p.shape {
		h.Write([]byte(id))
		h.Write([]byte{' '})
	}
	return strconv.FormatUint(h.Sum64(), 36)
}

// problemTitles say what a status means to a person.
var problemTitles = map[int]string{
	http.StatusBadRequest: "This cannot be done as it was asked", http.StatusForbidden: "You may not do that here", http.StatusNotFound: "There is no such page",
	http.StatusInternalServerError: "The page cannot be made", http.StatusNotImplemented: "This server cannot do that",
	http.StatusBadGateway: "The server does not answer", http.StatusServiceUnavailable: "The server cannot do that now",
}

// inWords is what an error says to somebody who does not know the operations of the API.
func inWords(err error) string {
	if _, needs, ok := strings.Cut(err.Error(), " needs the right "); ok {
		return sentence("this needs the right " + needs)
	}
	return sentence(err.Error())
}

// problemPage says why there is no other page.
func (r *request) problemPage(err error) *page {
	status, text := http.StatusInternalServerError, "The log of the server says why."
	if p, ok := errors.AsType[*admin.Problem](err); ok {
		status, text = p.Status, inWords(err)
	} else {
		r.console.opt.Logger.Error("a page of the console cannot be made", "path", r.URL.Path, "err", err)
	}
	page := newPage("problem", cmp.Or(problemTitles[status], http.StatusText(status)), "", text)
	page.status, page.shape = status, []string{"problem"}
	return page
}
