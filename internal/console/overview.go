package console

import (
	"net/http"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/op"
)

// An overview is the first page.
type overview struct {
	Servers   list // the servers, if there are several
	Attention []attention
	More      int // number of findings that are not shown
	Total     int // number of findings that count
	History   historyView
	Sparks    map[string]*spark
	Tubes     tubeTable
	Oldest    []admin.Tube // the tube whose next job has waited longest, if there is one
	MayCharts bool
}

// An attention is a finding, with a link to the page to act on it.
type attention struct {
	admin.Finding
	Link, Do string
}

const (
	chartPoints     = 100
	shownFindings   = 8
	overviewTubes   = 10
	sparkPoints     = 60
	overviewSpark   = 200 // in pixels
	sparkHeight     = 28
	tubeSpark       = 88
	tubeSparkHeight = 20
)

func overviewPage(r *request) (*page, error) {
	o := &overview{Sparks: make(map[string]*spark)}
	var shown span
	o.History, shown = r.newHistoryView(r.site.Base)
	if shown.step < 60 {
		shown.step, shown.points = 1, 600
	}
	var found admin.Attention
	var stats admin.Stats
	var history, minute admin.History
	var oldest admin.Tubes
	api, ctx := r.api(), r.Context()
	err := r.parallel(r.site,
		func() (err error) { stats, err = api.GetStats(ctx); return err },
		func() (err error) {
			found, err = api.GetAttention(ctx, &admin.GetAttention{Limit: shownFindings})
			return err
		},
		func() (err error) {
			oldest, err = api.ListTubes(ctx, &admin.ListTubes{Sort: "-oldest_ready", Has: "ready", Limit: 1})
			return err
		},
		func() (err error) {
			o.Tubes, err = r.tubeTable(&admin.ListTubes{Sort: defaultTubeSort, Limit: overviewTubes})
			return err
		},
		func() (err error) {
			minute, err = api.GetHistory(ctx, &admin.GetHistory{Points: new(60)})
			return optional(err)
		},
		func() (err error) {
			history, err = api.GetHistory(ctx, &admin.GetHistory{Step: shown.step, Points: new(shown.points)})
			return optional(err)
		},
	)
	if err != nil {
		return nil, err
	}
	for _, f := range found.Findings {
		o.Attention = append(o.Attention, r.newAttention(f))
	}
	o.Total, o.More = found.Total, found.Total-tubesOf(found.Findings)
	o.Oldest = oldest.Tubes
	if o.MayCharts = history.Step > 0; o.MayCharts {
		levels := jobsByState(&stats.Jobs)
		levels["connections"], levels["waiting"] = stats.Connections.Current, stats.Connections.Waiting
		o.History.Charts = historyCharts(&history, levels, &shown)
		for _, state := range op.States {
			o.Sparks[state] = newSpark("spark-"+state, state, downsample(minute.Series[state], sparkPoints, 1), overviewSpark, sparkHeight)
		}
	}
	p := newPage("overview", "Overview", "overview", o)
	p.Server, p.Me = &stats, r.meOn("")
	p.shape = append(p.shape, o.History.shape())
	for _, t := range o.Oldest {
		p.shape = append(p.shape, "oldest "+t.Name)
	}
	if r.site.other == nil {
		o.Servers = r.serverRows(serverRow{Stats: stats, Found: found.Total, Worst: worst(found.Findings)}, p.Me)
	}
	return p, nil
}

// tubesOf returns the number of findings, counting each tube.
func tubesOf(findings []admin.Finding) (n int) {
	for i := range findings {
		n += max(1, findings[i].Tubes)
	}
	return n
}

// findingKinds contains the kinds of findings about tubes. sort and has are the sort
// order and the filter that show these tubes.
var findingKinds = map[string]struct{ sort, has string }{
	"buried": {"-buried", "buried"}, "unwatched": {"", "unwatched"}, "timeouts": {"-timeouts", ""}, "releases": {"-releases", ""}, "held": {"-reserved", "reserved"},
	"slow": {"-oldest_ready", "ready"}, "limited": {"", "limited"}, "paused": {"", "paused"},
}

// newAttention returns a finding with its link.
func (r *request) newAttention(f admin.Finding) attention {
	at := func(link, do string) attention { return attention{f, link, do} }
	switch {
	case f.Kind == "cluster":
		return at(r.site.Base+"server#cluster", "Cluster")
	case f.Kind == "connections":
		return at(r.site.Base+"connections", "Connections")
	case f.Tubes > 0:
		k := findingKinds[f.Kind]
		return at(withQuery(r.site.Base+"tubes", "q", f.Like, "sort", k.sort, "has", k.has), "See them")
	case f.Kind == "buried":
		if r.mayPeek(f.Tube) {
			return at(withQuery(r.site.Base+"failures", "tube", f.Tube), "See why")
		}
		return at(r.tubeLink(f.Tube, "buried"), "See them")
	case f.Kind == "held":
		return at(withQuery(r.site.Base+"working", "tube", f.Tube), "See it")
	case f.Kind == "timeouts" && r.mayPeek(f.Tube):
		return at(withQuery(r.site.Base+"search", "q", "tube:"+f.Tube+" timeouts>=1"), "See them")
	case f.Tube != "":
		return at(r.tubeLink(f.Tube, ""), "Open")
	}
	return at(r.site.Base+"server", "Server")
}

// mayPeek reports whether the user may search a tube. Live values have no links, so
// mayPeek always returns true for them.
func (r *request) mayPeek(tube string) bool {
	return r.live || slices.Contains(r.meOn(tube).Tube, "peek")
}

// parallel runs functions that send requests to a server, and returns an error of one of
// them. Requests to another server run concurrently, because each takes some time.
// Requests to this server run one at a time, to leave processors to the queue's clients.
func (r *request) parallel(s *site, all ...func() error) error {
	var group errgroup.Group
	if s.other == nil {
		group.SetLimit(1)
	}
	for _, f := range all {
		group.Go(func() error { return r.console.recoverToError(f) })
	}
	return group.Wait()
}

// optional ignores errors about missing rights, for optional parts of a page.
func optional(err error) error {
	if isStatus(err, http.StatusForbidden) {
		return nil
	}
	return err
}
