package benchcmd

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/beanpole-mq/beanpole/internal/bench"
)

// openHistory opens a history, which is made if there is none.
func openHistory(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) // #nosec G302 -- measurements are for everybody
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	return f, nil
}

// checkHistory tells whether a history can be added to, before hours are spent on
// what it is to be told.
func checkHistory(path string) error {
	f, err := openHistory(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// addToHistory adds reports of this version to a history.
func addToHistory(path, version string, reports []bench.Report) error {
	f, err := openHistory(path)
	if err != nil {
		return err
	}
	fi, err := f.Stat()
	if err == nil && fi.Size() == 0 {
		header := csv.NewWriter(f)
		header.Write(bench.HistoryHeader) // an error sticks until Error
		header.Flush()
		err = header.Error()
	}
	if err == nil {
		err = bench.WriteHistory(f, reports, bench.ThisMachine(), version, time.Now())
	}
	return errors.Join(err, f.Close())
}
