package console

import (
	"cmp"
	"errors"
	"hash/fnv"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// A page is the data of a template. Its exported fields and methods are for templates.
type page struct {
	template string
	status   int

	Title   string
	Section string // section of the navigation
	Data    any
	View    string // URL of the same view after the queue has changed; the default is Path

	// Set by fill.
	*site
	Version, Theme, Path      string
	Sites                     []*site // the servers, if there are several that the user can see
	Assets                    map[string]string
	Identity                  string
	CanLogOut, ReadOnly, Open bool
	Note                      *note
	Going                     []taskRow // the note's tasks
	Server                    *admin.Stats
	Now                       time.Time
	Me                        *admin.Me

	file   func(w http.ResponseWriter) // writes a file in place of HTML
	values *liveValues                 // nil unless values are collected
	shape  []string                    // shape of the rows; see Row
}

// newPage returns a page with the status 200.
func newPage(template, title, section string, data any) *page {
	return &page{template: template, status: http.StatusOK, Title: title, Section: section, Data: data}
}

// fill adds the fields that every page has.
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

// addNote adds the note about an action, and the progress of its tasks.
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
			p.Going = append(p.Going, taskRow{t})
			p.shape = append(p.shape, t.Status)
		}
	}
}

// IsLive reports whether the page updates live. The page of a server that does not answer
// also does, so that it asks the server again.
func (p *page) IsLive() bool {
	return p.status == http.StatusBadGateway || slices.Contains(livePages, p.template)
}

// May reports whether the user has a right on at least one tube and the console permits
// its use.
func (p *page) May(right string) bool {
	return slices.Contains(p.Me.Anywhere, right) && p.mayChange(right)
}

// MayEverywhere is May for every tube.
func (p *page) MayEverywhere(right string) bool {
	return slices.Contains(p.Me.Everywhere, right) && p.mayChange(right)
}

// MayHere is May for the tube of the page.
func (p *page) MayHere(right string) bool {
	return slices.Contains(p.Me.Tube, right) && p.mayChange(right)
}

// sections contains the pages of the navigation.
var sections = []string{"overview", "tubes", "failures", "working", "connections", "activity", "server"}

// Opens reports whether the user can open a section, or search.
func (p *page) Opens(section string) bool {
	switch section {
	case "connections":
		return p.MayEverywhere("stats")
	case "activity":
		return slices.Contains(p.Me.Anywhere, "manage")
	case "search", "failures":
		return p.May("stats") && p.May("peek")
	}
	return p.May("stats") || len(p.Me.Anywhere) == 0
}

func (p *page) mayChange(right string) bool {
	return !p.ReadOnly || right == "stats" || right == "peek"
}

// meOn returns the user, with its rights on a tube.
func (r *request) meOn(tube string) *admin.Me {
	me, _ := r.api().GetMe(r.Context(), &admin.GetMe{Tube: tube}) // without an answer, the user has no rights
	return &me
}

// manages returns a function that reports whether the user has the manage right on a
// tube. For live values, it always returns false, because they do not depend on the
// right.
func (r *request) manages() func(tube string) bool {
	if r.live || r.isReadOnly() {
		return func(string) bool { return false }
	}
	me := r.meOn("")
	if every := slices.Contains(me.Everywhere, "manage"); every || !slices.Contains(me.Anywhere, "manage") {
		return func(string) bool { return every }
	}
	return func(tube string) bool { return slices.Contains(r.meOn(tube).Tube, "manage") }
}

// liveValues contains the texts of a page that can change, by their ids.
type liveValues struct {
	Texts map[string]value  `json:"v,omitempty"`
	Lines map[string]string `json:"d,omitempty"` // lines of charts: the attribute d of a path
	Shape string            `json:"s,omitempty"` // differs if the rows or their order differ
}

// A value is a text with the class of its element.
type value struct {
	Text  string `json:"t"`
	Class string `json:"c"`
}

// A Spot is a place on a page whose text can change.
type Spot struct{ ID, Text, Class string }

// Live marks a text that can change.
func (p *page) Live(id, text, class string) Spot {
	if p.values != nil {
		p.values.Texts[id] = value{text, class}
	}
	return Spot{id, text, class}
}

// A Path is a line of a chart.
type Path struct{ ID, D string }

// Line marks a line of a chart that can change.
func (p *page) Line(id, d string) Path {
	if p.values != nil {
		p.values.Lines[id] = d
	}
	return Path{id, d}
}

// Sparked marks a small chart that can change.
func (p *page) Sparked(s *spark) *spark {
	p.Line(s.ID, s.Line)
	return s
}

// Row adds a row to the shape of the page, and returns its id.
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

// Shape returns a text that differs if the rows or their order differ.
func (p *page) Shape() string {
	h := fnv.New64a()
	for _, id := range p.shape {
		h.Write([]byte(id))
		h.Write([]byte{' '})
	}
	return strconv.FormatUint(h.Sum64(), 36)
}

// lacks matches an error of the API about missing rights.
var lacks = regexp.MustCompile(`^\w+ needs (the [a-z ]+ rights?) (on .*)$`)

// inWords returns an error as a sentence, with labels in place of the API's names.
func inWords(err error) string {
	text := lacks.ReplaceAllString(err.Error(), "you need $1 $2")
	if name, rest, ok := strings.Cut(text, ": "); ok && fieldNames[name] != "" {
		if slices.Contains(durationFields, name) {
			rest = "enter a time such as 30s, 10m, 1h or 2d"
		}
		text = fieldNames[name] + ": " + strings.Replace(rest, "want", "enter", 1)
	}
	return sentence(text)
}

// fieldNames contains the labels of members of the API.
var fieldNames = map[string]string{
	"seconds": "Duration", "priority": "Priority", "delay": "Delay", "ttr": "Time to run", "to": "To the tube", "tube": "Tube", "count": "Maximum number",
	"body": "Body", "body_base64": "Body", "state": "State", "q": "Search",
}

// problemPage returns the page that shows an error.
func (r *request) problemPage(err error) *page {
	status, text := http.StatusInternalServerError, "The reason is in the log of the server."
	if p, ok := errors.AsType[*admin.Problem](err); ok {
		status, text = p.Status, inWords(err)
	} else {
		r.console.opt.Logger.Error("rendering console page", "path", r.URL.Path, "err", err)
	}
	page := newPage("problem", http.StatusText(status), "", text)
	page.status, page.shape = status, []string{"problem"}
	return page
}
