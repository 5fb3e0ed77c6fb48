package console

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/schedule"
)

func schedulesPage(r *request) (*page, error) {
	all, err := r.api().ListSchedules(r.Context())
	if err != nil {
		return nil, err
	}
	p := newPage("schedules", "Schedules", "tubes", all.Schedules)
	return p, nil
}

// A scheduleView is the page with the form of a schedule.
type scheduleView struct {
	Name    string
	Exists  bool
	Fields  []scheduleField
	Next    nextRuns
	Problem string // reason why the form was rejected
}

// A scheduleField is a setting with its value in the form.
type scheduleField struct {
	schedule.Setting
	Value, Problem string
}

// A nextRuns contains the next runs for the settings in a form.
type nextRuns struct {
	Problem string
	Runs    []string
}

// nextOf returns the next runs for settings, in their time zone.
func nextOf(settings map[string]string, now time.Time) (n nextRuns) {
	s, err := schedule.Compile("x", settings)
	if s.Next == nil {
		wrong := problemsOf(err)
		n.Problem = sentence(cmp.Or(wrong["cron"], wrong["every"], wrong["timezone"]))
		return n
	}
	zone, _ := schedule.ZoneOf(settings["timezone"])
	for _, at := range schedule.Upcoming(s, now.Unix()) {
		n.Runs = append(n.Runs, time.Unix(at, 0).In(zone).Format("Mon 2006-01-02 15:04:05 MST"))
	}
	return n
}

// settingsOf returns the settings of a form.
func settingsOf(r *request) map[string]string {
	settings := make(map[string]string)
	for _, name := range schedule.Names() {
		if value := strings.ReplaceAll(r.FormValue(name), "\r\n", "\n"); value != "" { // browsers end lines with CR LF
			settings[name] = value
		}
	}
	return settings
}

// schedulePage shows the form for the schedule in the URL, or for a new one.
func schedulePage(r *request) (*page, error) {
	name, settings := strings.TrimSpace(r.FormValue("name")), settingsOf(r)
	exists, title := false, "New schedule"
	if name != "" && r.Method == http.MethodGet {
		found, err := r.api().GetSchedule(r.Context(), &admin.OfSchedule{Name: name})
		if err != nil {
			return nil, err
		}
		settings, exists, title = found.Settings, true, "Schedule "+name
	}
	return newPage("schedule", title, "tubes", newScheduleView(name, exists, settings)), nil
}

func newScheduleView(name string, exists bool, settings map[string]string) *scheduleView {
	v := &scheduleView{Name: name, Exists: exists, Next: nextOf(settings, time.Now())}
	for _, s := range schedule.Settings {
		v.Fields = append(v.Fields, scheduleField{s, settings[s.Name], ""})
	}
	return v
}

// nextPage shows the next runs of the settings in a form, while the user types.
func nextPage(r *request) (*page, error) {
	return newPage("schedule", "Next runs", "tubes", newScheduleView("", false, settingsOf(r))), nil
}

// setSchedule sets the definition of a schedule.
func setSchedule(r *request) (*page, error) {
	p, err := schedulePage(r)
	if err != nil {
		return nil, err
	}
	v := p.Data.(*scheduleView)
	in := &admin.SetSchedule{OfSchedule: admin.OfSchedule{Name: v.Name}, Settings: settingsOf(r)}
	if v.Name == "" {
		v.Problem, p.status = "Enter a name.", http.StatusUnprocessableEntity
		return p, nil
	}
	if _, err := r.api().SetSchedule(r.Context(), in); err != nil {
		p.status, v.Problem = http.StatusUnprocessableEntity, refused(err, func(name string) *string {
			if i := slices.IndexFunc(v.Fields, func(f scheduleField) bool { return f.Name == name }); i >= 0 {
				return &v.Fields[i].Problem
			}
			return nil
		})
		return p, nil
	}
	return r.noting(note{Text: "Schedule " + v.Name + " saved."}, r.site.Base+"schedules")
}
