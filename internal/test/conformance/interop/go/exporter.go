package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/beanstalkd/go-beanstalk"
	"github.com/mitchellh/mapstructure"
)

// kedaStats contains the statistics of a tube that KEDA 2.21 reads.
type kedaStats struct {
	TotalJobs    int64 `mapstructure:"total-jobs"`
	JobsReady    int64 `mapstructure:"current-jobs-ready"`
	JobsReserved int64 `mapstructure:"current-jobs-reserved"`
	JobsUrgent   int64 `mapstructure:"current-jobs-urgent"`
	JobsBuried   int64 `mapstructure:"current-jobs-buried"`
	JobsDelayed  int64 `mapstructure:"current-jobs-delayed"`
}

// scalerChecks returns checks that behave like KEDA's scaler: they use go-beanstalk and
// one connection.
func scalerChecks(addr string) []check {
	var c *beanstalk.Conn
	decode := func(tube string) (s kedaStats, err error) {
		if c == nil {
			if c, err = beanstalk.Dial("tcp", addr); err != nil {
				return s, err
			}
		}
		raw, err := beanstalk.NewTube(c, tube).Stats()
		if err != nil {
			return s, err
		}
		return s, mapstructure.WeakDecode(raw, &s)
	}
	return []check{
		{"KEDA: the jobs of a tube, ready, reserved and delayed", func() error {
			s, err := decode("mail")
			return errors.Join(err, equal("mail", s, kedaStats{TotalJobs: 3, JobsReady: 3, JobsUrgent: 3}))
		}},
		{"KEDA: the jobs of a tube named 123", func() error {
			s, err := decode("123")
			return errors.Join(err, equal("123", s, kedaStats{TotalJobs: 1, JobsDelayed: 1}))
		}},
		{"KEDA: a missing tube has no jobs", func() error {
			if _, err := decode("gone"); !errors.Is(err, beanstalk.ErrNotFound) {
				return fmt.Errorf("got %w, want not found", err)
			}
			_, err := decode("mail") // the connection is still usable
			return err
		}},
	}
}

// exporterChecks returns checks that behave like the Prometheus exporters of davidtannock
// and messagebird, both named beanstalkd_exporter. They request stats, list-tubes, and
// stats-tube for each tube.
func exporterChecks(addr string) []check {
	ask := func() (server map[string]string, tubes map[string]map[string]string, err error) {
		c, err := beanstalk.Dial("tcp", addr)
		if err != nil {
			return nil, nil, err
		}
		defer c.Close()
		if server, err = c.Stats(); err != nil {
			return nil, nil, err
		}
		names, err := c.ListTubes()
		if err != nil {
			return nil, nil, err
		}
		tubes = make(map[string]map[string]string)
		for _, name := range names {
			if tubes[name], err = beanstalk.NewTube(c, name).Stats(); err != nil {
				return nil, nil, err
			}
		}
		return server, tubes, nil
	}
	return []check{
		{"davidtannock's exporter: all exported values exist and are integers", func() error {
			server, tubes, err := ask()
			if err != nil {
				return err
			}
			errs := []error{equal("tubes", len(tubes), 3), integers("stats", server, exportedServer)}
			for name, stats := range tubes {
				errs = append(errs, integers("stats-tube "+name, stats, exportedTube))
			}
			return errors.Join(errs...)
		}},
		{"messagebird's exporter: every key makes the name of a metric, and no two the same", func() error {
			server, tubes, err := ask()
			if err != nil {
				return err
			}
			errs := []error{metricNames("stats", server)}
			for name, stats := range tubes {
				errs = append(errs, metricNames("stats-tube "+name, stats))
			}
			return errors.Join(errs...)
		}},
	}
}

// integers checks that statistics exist and are integers.
func integers(what string, stats map[string]string, keys string) error {
	var errs []error
	for _, key := range strings.Fields(keys) {
		if _, err := strconv.ParseInt(stats[key], 10, 64); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", what, key, err))
		}
	}
	return errors.Join(errs...)
}

var metricName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)

func metricNames(what string, stats map[string]string) error {
	var errs []error
	seen := make(map[string]bool)
	for key := range stats {
		name := strings.ReplaceAll(key, "-", "_")
		if !metricName.MatchString(name) || seen[name] {
			errs = append(errs, fmt.Errorf("%s: %q does not give a separate metric", what, key))
		}
		seen[name] = true
	}
	return errors.Join(errs...)
}

const (
	exportedServer = `cmd-bury cmd-delete cmd-ignore cmd-kick cmd-list-tube-used cmd-list-tubes cmd-list-tubes-watched cmd-pause-tube
cmd-peek cmd-peek-buried cmd-peek-delayed cmd-peek-ready cmd-put cmd-release cmd-reserve cmd-reserve-with-timeout cmd-stats
cmd-stats-job cmd-stats-tube cmd-touch cmd-use cmd-watch current-connections current-jobs-buried current-jobs-delayed
current-jobs-ready current-jobs-reserved current-jobs-urgent current-producers current-tubes current-waiting
current-workers job-timeouts total-connections total-jobs`

	exportedTube = `cmd-delete cmd-pause-tube current-jobs-buried current-jobs-delayed current-jobs-ready current-jobs-reserved
current-jobs-urgent current-using current-waiting current-watching pause pause-time-left total-jobs`
)
