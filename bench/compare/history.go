package main

import (
	"debug/buildinfo"
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/beanpole-mq/beanpole/bench"
)

// openHistory opens a history to add to. It is begun if there is none.
func openHistory(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) // #nosec G302 -- measurements are for everybody
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	fi, err := f.Stat()
	if err == nil && fi.Size() == 0 {
		header := csv.NewWriter(f)
		header.Write(bench.HistoryHeader) // an error sticks until Error
		header.Flush()
		err = header.Error()
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("history: %w", err)
	}
	return f, nil
}

// versionOf returns the version and the commit that the program of a server was built from,
// or "" if it does not say: a program in Go does.
func versionOf(s bench.Server) string {
	path, err := exec.LookPath(s.Command[0])
	if err != nil {
		return ""
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return ""
	}
	version := strings.TrimPrefix(info.Main.Version, "v")
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			version += ", commit " + setting.Value
		}
	}
	return version
}
