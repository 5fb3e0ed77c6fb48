package budget

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A budget is the maximum cost of a command.
type budget struct {
	count float64 // per command
	above float64 // tolerance, as a fraction of count
}

const (
	// rounding is the minimum tolerance, above and below: a few system calls do not
	// belong to a command.
	rounding = 0.01

	// cheaper is the fraction by which a count must be below its budget before the test
	// asks for a lower budget. A larger tolerance replaces it.
	cheaper = 0.10
)

func (b budget) exceeded(n float64) bool { return n > b.count*(1+b.above)+rounding }
func (b budget) generous(n float64) bool { return n < b.count*(1-max(cheaper, b.above))-rounding }

// A table is a file of budgets.
type table struct {
	path string
	head string // lines that start with #

	mu   sync.Mutex        // guards the table, because scenarios are counted in parallel
	rows map[string]budget // by name
	used map[string]bool   // names that were looked up
}

// readTable reads a table, which is empty if the file does not exist.
func readTable(path string) (*table, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	t := &table{path: path, rows: make(map[string]budget), used: make(map[string]bool)}
	for n, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "#") || line == "" {
			continue
		}
		var name string
		var b budget
		if _, err := fmt.Sscanf(line, "%s %f %f%%", &name, &b.count, &b.above); err != nil {
			return nil, fmt.Errorf("%s:%d: %q: %w", path, n+1, line, err)
		}
		b.above /= 100
		t.rows[name] = b
	}
	return t, nil
}

// write writes the table, sorted by name, without the unused rows.
func (t *table) write() error {
	var text strings.Builder
	text.WriteString(t.head)
	for _, name := range slices.Sorted(maps.Keys(t.rows)) {
		if b := t.rows[name]; t.used[name] {
			fmt.Fprintf(&text, "%-44s %9s  %2.0f%%\n", name, figure(b.count), b.above*100)
		}
	}
	if err := os.MkdirAll(filepath.Dir(t.path), 0o777); err != nil {
		return err
	}
	return os.WriteFile(t.path, []byte(text.String()), 0o666)
}

// figure formats a count, with thousandths only if it is small.
func figure(n float64) string {
	if n < 100 {
		return fmt.Sprintf("%.3f", n)
	}
	return fmt.Sprintf("%.0f", n)
}

// check compares a count with its budget and describes the result.
func (t *table) check(name string, n float64) (message string, ok bool) {
	t.used[name] = true
	b, found := t.rows[name]
	switch {
	case !found:
		return fmt.Sprintf("%s: %s per command, but %s has no budget for it; make budget UPDATE=1 sets it", name, figure(n), t.path), false
	case b.exceeded(n):
		return fmt.Sprintf("%s: %s per command is OVER the budget of %s (tolerance +%.0f%%, excess %+.1f%%)",
			name, figure(n), figure(b.count), b.above*100, 100*(n/b.count-1)), false
	case b.generous(n):
		return fmt.Sprintf("%s: %s per command is far below the budget of %s; LOWER it with make budget UPDATE=1", name, figure(n), figure(b.count)), true
	}
	return fmt.Sprintf("%s: %s per command, budget %s", name, figure(n), figure(b.count)), true
}

// set makes a count the budget. above is the tolerance of a new row.
func (t *table) set(name string, n, above float64) {
	if b, found := t.rows[name]; found {
		above = b.above
	}
	t.used[name] = true
	t.rows[name] = budget{n, above}
}

// unused returns the names of rows that were not looked up.
func (t *table) unused() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(t.rows)), func(name string) bool { return t.used[name] })
}

// A policy that takes no action adds at most 3 % to the cost of a job's life. All such
// policies together add 4 %, and unique adds 10 %. The test reads the counts from the
// files that TestInstructions checks.
func TestPoliciesCostLittle(t *testing.T) {
	paths, err := filepath.Glob("testdata/instructions-*")
	if err != nil || len(paths) == 0 {
		t.Fatalf("budget files: %v, %v", paths, err)
	}
	for _, path := range paths {
		tab, err := readTable(path)
		if err != nil {
			t.Fatal(err)
		}
		for name, with := range tab.rows {
			base, policy, ok := strings.Cut(name, "-with-")
			most := cmp.Or(map[string]float64{"all": 1.04, "unique": 1.10}[policy], 1.03)
			if off := tab.rows[base]; ok && (off.count == 0 || with.count > most*off.count) {
				t.Errorf("%s: %s: %s per command, without the policy %s", path, name, figure(with.count), figure(off.count))
			}
		}
	}
}

// A count above its budget fails the test, and a count far below its budget requests a
// lower budget. The test reports rows without a count and counts without a row.
func TestTable(t *testing.T) {
	path := t.TempDir() + "/table"
	text := "# comment\n\nbig 1000 5%\nloose 1.00 300%\nnone 0.00 50%\nsmall 1.00 10%\n"
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	tab, err := readTable(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name  string
		count float64
		ok    bool
		lower bool
	}{
		{"big", 1000, true, false},
		{"big", 1049, true, false},
		{"big", 1051, false, false},
		{"big", 901, true, false},
		{"big", 899, true, true},
		{"small", 1.10, true, false},
		{"small", 1.12, false, false},
		{"small", 0.5, true, true},
		{"loose", 4, true, false},
		{"loose", 4.1, false, false},
		{"loose", 0, true, false},
		{"none", 0.009, true, false},
		{"none", 0.03, false, false},
		{"other", 1, false, false},
	} {
		message, ok := tab.check(test.name, test.count)
		if lower := strings.Contains(message, "LOWER"); ok != test.ok || lower != test.lower {
			t.Errorf("%s %v: ok %v, %q", test.name, test.count, ok, message)
		}
	}
	if got := tab.unused(); len(got) > 0 {
		t.Errorf("unused: %v, want none", got)
	}

	tab, err = readTable(path)
	if err != nil {
		t.Fatal(err)
	}
	tab.set("big", 800.4, 0.5)
	tab.set("other", 2.3456, 0.5)
	if got := tab.unused(); !slices.Equal(got, []string{"loose", "none", "small"}) {
		t.Errorf("unused: %v, want all but big", got)
	}
	if err := tab.write(); err != nil {
		t.Fatal(err)
	}
	if tab, err = readTable(path); err != nil {
		t.Fatal(err)
	}
	if want := map[string]budget{"big": {800, 0.05}, "other": {2.346, 0.5}}; !maps.Equal(tab.rows, want) {
		t.Errorf("after writing and reading: %v, want %v", tab.rows, want)
	}

	if err := os.WriteFile(path, []byte("big many 5%\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := readTable(path); err == nil {
		t.Error("a row without a number was accepted")
	}
}
