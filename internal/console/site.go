package console

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// A Server is another server that the console shows. Its address comes only from the
// configuration.
type Server struct {
	Name string // part of the URLs of its pages, and argument of Options.Open

	URL string // URL of its admin listener, which pages show

	ReadOnly bool // the console must not change the server
}

// A site is a server whose pages the console shows. All pages use its API.
type site struct {
	Name  string
	Base  string  // start of the paths of its pages
	other *Server // nil for the server of this process
}

// sitesOf returns this server and the other servers as sites.
func sitesOf(opt *Options) []*site {
	all := []*site{{Name: opt.Host, Base: Prefix}}
	for i := range opt.Servers {
		s := &opt.Servers[i]
		all = append(all, &site{Name: s.Name, Base: Prefix + "s/" + url.PathEscape(s.Name) + "/", other: s})
	}
	return all
}

// siteOf returns the site with a name. The empty name means this server.
func (c *Console) siteOf(name string) *site {
	if name == "" {
		return c.sites[0]
	}
	for _, s := range c.sites[1:] {
		if s.Name == name {
			return s
		}
	}
	return &site{Name: name, Base: Prefix, other: new(Server)}
}

// isReadOnly reports whether the console must not change the server.
func (s *site) isReadOnly() bool { return s.other != nil && s.other.ReadOnly }

// seesOthers reports whether there are other servers that the user may see. me has the
// rights on the page's site, but the rights on this server are decisive.
func (r *request) seesOthers(me *admin.Me) bool {
	if len(r.console.sites) == 1 {
		return false
	}
	if own := r.console.sites[0]; r.site != own {
		here, _ := r.apiOf(own).GetMe(r.Context(), &admin.GetMe{}) // after an error, the user has no rights
		me = &here
	}
	return slices.Contains(me.Everywhere, "stats") && slices.Contains(me.Everywhere, "peek")
}

// A serverRow is a server in the list of servers.
type serverRow struct {
	Known bool   // whether the server has been asked
	Why   string // the reason why it does not answer; empty if it answers
	Stats admin.Stats
	Found int    // number of findings
	Worst string // severity of the worst finding; empty without findings
}

// summaryPatience is the time that a page waits for other servers. After that, it shows
// their last values.
const summaryPatience = 150 * time.Millisecond

// summary returns the last values of a server, and a channel for newer values. The
// channel is nil if the values are recent. The console queries other servers only while
// the list is open.
func (r *request) summary(s *site) (seen serverRow, more <-chan singleflight.Result) {
	return r.console.summaries.of(s.Name, func() (row serverRow, _ error) {
		if err := r.console.recoverToError(func() error { row = s.summarize(r.detached()); return nil }); err != nil {
			row.Why = err.Error()
		}
		row.Known = true
		return row, nil
	})
}

// summarize returns the values of a server for the list.
func (s *site) summarize(r *request) serverRow {
	var row serverRow
	var found admin.Attention
	api := r.apiOf(s)
	err := r.parallel(s,
		func() (err error) { row.Stats, err = api.GetStats(r.Context()); return err },
		func() (err error) {
			found, err = api.GetAttention(r.Context(), &admin.GetAttention{Limit: 1})
			return err
		},
	)
	if err != nil {
		row.Why = strings.TrimPrefix(err.Error(), "the server "+s.Name+" ")
		return row
	}
	row.Found, row.Worst = found.Total, worst(found.Findings)
	return row
}

// worst returns the severity of the first finding, which is the worst. It returns "" if
// there are no findings.
func worst(findings []admin.Finding) string {
	if len(findings) == 0 {
		return ""
	}
	return findings[0].Severity
}

// serverColumns are the columns of the list of servers.
var serverColumns = []column{{Title: "Server", Class: "l"}, {Title: "Ready"}, {Title: "Reserved"}, {Title: "Delayed"}, {Title: "Buried"}, {Title: "Workers", Class: "opt"}, {Title: "Tubes", Class: "opt"}, {Title: "Needs attention", Class: "l grow"}}

// addTo adds a server to the list.
func (s *serverRow) addTo(l *list, of *site) {
	row := listRow{ID: rowID("server " + of.Base), Name: of.Name, Link: of.Base}
	row.tag(s.Why != "", "down", "tag bad")
	row.tag(s.Why == "" && s.Stats.Draining, "draining", "tag warn")
	var cells []cell
	st := &s.Stats
	for i, n := range []uint64{st.Jobs.Ready, st.Jobs.Reserved, st.Jobs.Delayed, st.Jobs.Buried, st.Connections.Workers, st.Tubes} {
		c := &serverColumns[i+1]
		one := markedIf(c.Title == "Buried" && n > 0, "hot", counted("", n))
		if !s.Known || s.Why != "" {
			one = greyed("–")
		}
		one.ID = strings.ToLower(c.Title)
		cells = append(cells, one)
	}
	l.add(row, append(cells, s.attention())...)
}

// attention returns the cell with the findings of a server.
func (s *serverRow) attention() cell {
	c := cell{ID: "state"}
	switch {
	case s.Why != "":
		c.Text, c.Class = s.Why, "why late"
	case !s.Known:
		c.Text, c.Class = "connecting…", "why zero"
	case s.Found == 0:
		c.Text, c.Class = "nothing", "zero"
	case s.Worst == "bad":
		c.Text, c.Class = num(int64(s.Found)), "hot"
	default:
		c.Text, c.Class = num(int64(s.Found)), "late"
	}
	return c
}

// serverRows returns the list of servers, if there are several that the user may see.
func (r *request) serverRows(own serverRow, me *admin.Me) (l list) {
	if !r.seesOthers(me) {
		return l
	}
	ctx, cancel := context.WithTimeout(r.Context(), summaryPatience)
	defer cancel()
	for _, s := range r.console.sites[1:] {
		r.summary(s) // starts the requests to all servers at the same time
	}
	own.Known, l.Columns = true, serverColumns
	for i, s := range r.console.sites {
		row := own
		if i > 0 {
			var more <-chan singleflight.Result
			if row, more = r.summary(s); more != nil {
				select {
				case one := <-more:
					row = one.Val.(serverRow)
				case <-ctx.Done():
				}
			}
		}
		row.addTo(&l, s)
	}
	return l
}
