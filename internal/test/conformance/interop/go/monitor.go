package main

import (
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"slices"
	"strings"

	"github.com/beanstalkd/go-beanstalk"
	"gopkg.in/yaml.v2"
)

// serverStats contains the types that monitors use for the values of stats.
type serverStats struct {
	Urgent    int     `yaml:"current-jobs-urgent"`
	Ready     int     `yaml:"current-jobs-ready"`
	Reserved  int     `yaml:"current-jobs-reserved"`
	Delayed   int     `yaml:"current-jobs-delayed"`
	Buried    int     `yaml:"current-jobs-buried"`
	Put       int     `yaml:"cmd-put"`
	TotalJobs int     `yaml:"total-jobs"`
	MaxSize   int     `yaml:"max-job-size"`
	Tubes     int     `yaml:"current-tubes"`
	Conns     int     `yaml:"current-connections"`
	Waiting   int     `yaml:"current-waiting"`
	Pid       int     `yaml:"pid"`
	Version   string  `yaml:"version"`
	UTime     float64 `yaml:"rusage-utime"`
	STime     float64 `yaml:"rusage-stime"`
	Uptime    int     `yaml:"uptime"`
	Oldest    int     `yaml:"binlog-oldest-index"`
	MaxLog    int     `yaml:"binlog-max-size"`
	Draining  bool    `yaml:"draining"`
	ID        string  `yaml:"id"`
	Hostname  string  `yaml:"hostname"`
	OS        string  `yaml:"os"`
	Platform  string  `yaml:"platform"`
}

type tubeStats struct {
	Name      string `yaml:"name"`
	Urgent    int    `yaml:"current-jobs-urgent"`
	Ready     int    `yaml:"current-jobs-ready"`
	Reserved  int    `yaml:"current-jobs-reserved"`
	Delayed   int    `yaml:"current-jobs-delayed"`
	Buried    int    `yaml:"current-jobs-buried"`
	TotalJobs int    `yaml:"total-jobs"`
	Using     int    `yaml:"current-using"`
	Watching  int    `yaml:"current-watching"`
	Waiting   int    `yaml:"current-waiting"`
	Delete    int    `yaml:"cmd-delete"`
	PauseTube int    `yaml:"cmd-pause-tube"`
	Pause     int    `yaml:"pause"`
	TimeLeft  int    `yaml:"pause-time-left"`
}

func monitorChecks(addr string) []check {
	// Like Telegraf, the monitor keeps one connection open.
	conn, dialErr := textproto.Dial("tcp", addr)
	ask := func(commands ...string) ([][]byte, error) {
		if dialErr != nil {
			return nil, dialErr
		}
		return pipeline(conn, commands...)
	}
	checks := []check{
		{"put the jobs to monitor", func() error {
			c, err := beanstalk.Dial("tcp", addr)
			if err != nil {
				return err
			}
			defer c.Close()
			tube := beanstalk.NewTube(c, "mail")
			for range 3 {
				if _, err := tube.Put([]byte("x"), 10, 0, 60e9); err != nil {
					return err
				}
			}
			_, err = beanstalk.NewTube(c, "123").Put([]byte("y"), 2000, 100e9, 60e9)
			return err
		}},
		{"Telegraf: list-tubes and stats in one packet", func() error {
			data, err := ask("list-tubes", "stats")
			if err != nil {
				return err
			}
			var tubes []string
			var s serverStats
			return errors.Join(yaml.Unmarshal(data[0], &tubes), yaml.UnmarshalStrict(only(data[1], s), &s),
				equal("tubes", tubes, "[default mail 123]"), equal("urgent", s.Urgent, 3), equal("ready", s.Ready, 3),
				equal("delayed", s.Delayed, 1), equal("put", s.Put, 4), equal("total", s.TotalJobs, 4), equal("tubes", s.Tubes, 3))
		}},
		{"Telegraf: all keys of stats, in their order", func() error {
			data, err := ask("stats")
			if err != nil {
				return err
			}
			var all yaml.MapSlice
			if err := yaml.Unmarshal(data[0], &all); err != nil {
				return err
			}
			var keys []string
			for _, item := range all {
				keys = append(keys, fmt.Sprint(item.Key))
			}
			want := strings.Fields(statsKeys)
			return equal("keys", keys[:min(len(keys), len(want))], want)
		}},
		{"Telegraf: stats-tube of every tube in one packet", func() error {
			data, err := ask("stats-tube default", "stats-tube mail", "stats-tube 123")
			if err != nil {
				return err
			}
			var errs []error
			var s [3]tubeStats
			for i := range s {
				errs = append(errs, yaml.UnmarshalStrict(data[i], &s[i]))
			}
			return errors.Join(append(errs, equal("name", s[1].Name, "mail"), equal("urgent", s[1].Urgent, 3),
				equal("total", s[1].TotalJobs, 3), equal("delayed", s[2].Delayed, 1), equal("watching", s[0].Watching, 1))...)
		}},
		{"a YAML parser reads the tube name 123 as text (since 1.13)", func() error {
			data, err := ask("stats-tube 123")
			if err != nil {
				return err
			}
			var s map[string]any
			return errors.Join(yaml.Unmarshal(data[0], &s), equal("type of name", fmt.Sprintf("%T", s["name"]), "string"))
		}},
		{"the os is not a YAML comment (since 1.13)", func() error {
			data, err := ask("stats")
			if err != nil {
				return err
			}
			var s serverStats
			return errors.Join(yaml.Unmarshal(data[0], &s), equal("os is there", s.OS != "", true))
		}},
		{"a missing tube is NOT_FOUND", func() error {
			c, err := textproto.Dial("tcp", addr)
			if err != nil {
				return err
			}
			defer c.Close()
			fmt.Fprint(c.W, "stats-tube gone\r\n")
			c.W.Flush()
			line, err := c.ReadLine()
			return errors.Join(err, equal("answer", line, "NOT_FOUND"))
		}},
	}
	return slices.Concat(checks, scalerChecks(addr), exporterChecks(addr))
}

// only returns the entries in data for which the struct has fields. So the strict parser
// checks their types and ignores the other entries.
func only(data []byte, s serverStats) []byte {
	known, _ := yaml.Marshal(s)
	var lines []string
	for _, line := range strings.Split(string(data), "\n") {
		key, _, _ := strings.Cut(line, ":")
		if strings.Contains("\n"+string(known), "\n"+key+":") {
			lines = append(lines, line)
		}
	}
	return []byte(strings.Join(lines, "\n"))
}

// pipeline sends all commands at once and returns the data of their replies.
func pipeline(c *textproto.Conn, commands ...string) ([][]byte, error) {
	fmt.Fprint(c.W, strings.Join(commands, "\r\n")+"\r\n")
	if err := c.W.Flush(); err != nil {
		return nil, err
	}
	var answers [][]byte
	for range commands {
		line, err := c.ReadLine()
		if err != nil {
			return nil, err
		}
		var n int
		if _, err := fmt.Sscanf(line, "OK %d", &n); err != nil {
			return nil, fmt.Errorf("got %q", line)
		}
		data := make([]byte, n+2)
		if _, err := io.ReadFull(c.R, data); err != nil {
			return nil, err
		}
		answers = append(answers, data[:n])
	}
	return answers, nil
}

const statsKeys = `current-jobs-urgent current-jobs-ready current-jobs-reserved current-jobs-delayed current-jobs-buried
cmd-put cmd-peek cmd-peek-ready cmd-peek-delayed cmd-peek-buried cmd-reserve cmd-reserve-with-timeout cmd-delete
cmd-release cmd-use cmd-watch cmd-ignore cmd-bury cmd-kick cmd-touch cmd-stats cmd-stats-job cmd-stats-tube
cmd-list-tubes cmd-list-tube-used cmd-list-tubes-watched cmd-pause-tube job-timeouts total-jobs max-job-size
current-tubes current-connections current-producers current-workers current-waiting total-connections pid version
rusage-utime rusage-stime uptime binlog-oldest-index binlog-current-index binlog-records-migrated
binlog-records-written binlog-max-size draining id hostname os platform`
