package config

import (
	"fmt"
	"os"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/schedule"
)

// A scheduleTable is a [[schedule]] table: a name and settings of [schedule.Settings].
type scheduleTable map[string]any

const (
	scheduleName = "schedule"  // name of the table
	nameOf       = "name"      // setting with the name of the schedule
	bodyFile     = "body-file" // setting with the path of a file, as an alternative to body
)

// Schedules returns the definitions of the schedules, by name.
func (opt *Options) Schedules() (map[string]string, error) {
	all := make(map[string]string)
	for i, t := range opt.Tables.Schedules {
		settings := make(map[string]string)
		for name, v := range t {
			settings[name] = fmt.Sprint(v)
		}
		name := settings[nameOf]
		delete(settings, nameOf)
		wrong := func(err error) error {
			return exit.UsageError("%s: schedule %d, %q: %s", opt.File, i+1, name, strings.ReplaceAll(err.Error(), "\n", "; "))
		}
		if path := settings[bodyFile]; path != "" {
			body, err := os.ReadFile(path)
			if err != nil {
				return nil, wrong(fmt.Errorf("%s: %w", bodyFile, err))
			}
			settings["body"] = string(body)
		}
		delete(settings, bodyFile)
		if _, err := schedule.Compile(name, settings); err != nil {
			return nil, wrong(err)
		}
		if all[name] != "" {
			return nil, wrong(fmt.Errorf("there is another schedule with this name"))
		}
		all[name] = schedule.Text(settings)
	}
	if len(all) > engine.MaxSchedules {
		return nil, exit.UsageError("%s: %d schedules; want at most %d", opt.File, len(all), engine.MaxSchedules)
	}
	return all, nil
}
