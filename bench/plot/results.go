package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/beanpole-mq/beanpole/bench"
)

// results are the files of a directory. Each line of a file is a JSON object: the first describes the
// machine, the others are reports of compare, or rows of clusterbench.
type results struct {
	dir     string
	machine bench.Machine // of the file that was read last
}

// read decodes the lines of a file but the first. A file that is not there has none.
func read[T any](r *results, name string) ([]T, error) {
	f, err := os.Open(filepath.Join(r.dir, name+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d := json.NewDecoder(bufio.NewReader(f))
	if err := d.Decode(&r.machine); err != nil {
		return nil, fmt.Errorf("%s.json: %w", name, err)
	}
	var all []T
	for d.More() {
		var v T
		if err := d.Decode(&v); err != nil {
			return nil, fmt.Errorf("%s.json: %w", name, err)
		}
		all = append(all, v)
	}
	return all, nil
}

// figure returns a figure of an experiment, or nil if it was not measured.
func (r *results) figure(file, experiment, name string) (*bench.Figure, error) {
	reports, err := read[bench.Report](r, file)
	if err != nil {
		return nil, err
	}
	for i := range reports {
		if reports[i].Name != experiment {
			continue
		}
		for j := range reports[i].Figures {
			if f := &reports[i].Figures[j]; f.Name == name {
				return f, nil
			}
		}
	}
	return nil, nil
}

func (r *results) cluster() ([]bench.Puts, error) { return read[bench.Puts](r, "cluster") }

// note says what was measured where.
func (r *results) note() string {
	return "Medians; the thin lines are from the smallest to the largest. " + r.machine.String()
}
