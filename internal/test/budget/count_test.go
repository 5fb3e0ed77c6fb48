package budget

import (
	"flag"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

var (
	count  = flag.Bool("budget.count", false, "count instructions and system calls, which takes minutes")
	update = flag.Bool("budget.update", false, "write what was counted into testdata, as the budget")
)

// counts contains the costs of a run, by name.
type counts map[string]float64

// A run executes a number of commands that is proportional to times. It returns that
// number and the costs of the process from start to end.
type run func(t *testing.T, times int) (commands int, took counts)

// attempts is the maximum number of attempts to count a scenario.
const attempts = 3

// A pair contains the lowest costs of runs of two sizes. The second size has twice the
// commands of the first.
type pair [2]struct {
	commands int
	least    counts
}

// add runs both sizes again and keeps the lower costs.
func (p *pair) add(t *testing.T, r run) {
	t.Helper()
	for i := range p {
		commands, took := r(t, i+1)
		p[i].commands = commands
		if p[i].least == nil {
			p[i].least = took
		}
		for name, n := range took {
			p[i].least[name] = min(p[i].least[name], n)
		}
	}
	if p[1].commands <= p[0].commands {
		t.Fatalf("%d commands in the first run, %d in the second", p[0].commands, p[1].commands)
	}
}

// perCommand returns the cost of a command, without the start of the process.
func (p *pair) perCommand() counts {
	result := make(counts)
	for name, n := range p[1].least {
		result[name] = max(0, (n-p[0].least[name])/float64(p[1].commands-p[0].commands))
	}
	return result
}

// hold counts the costs of a scenario's commands and compares each count with its row of
// the table. above is the tolerance of new rows.
func (tab *table) hold(t *testing.T, r run, above func(name string) float64) {
	t.Helper()
	var p pair
	for range attempts {
		p.add(t, r)
		if !*update && !tab.exceeded(p.perCommand()) {
			break
		}
	}
	took := p.perCommand()
	tab.mu.Lock()
	defer tab.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(took)) {
		if *update {
			tab.set(name, took[name], above(name))
		}
		if message, ok := tab.check(name, took[name]); ok {
			t.Log(message)
		} else {
			t.Error(message)
		}
	}
}

func (tab *table) exceeded(all counts) bool {
	for name, n := range all {
		if tab.rows[name].exceeded(n) {
			return true
		}
	}
	return false
}

// begin reads the table for a test that counts with a tool.
func begin(t *testing.T, path, head, tool string) *table {
	t.Helper()
	if !*count {
		t.Skip("counting takes minutes; use make budget or -budget.count")
	}
	if _, err := exec.LookPath(tool); err != nil {
		t.Skipf("%s is not installed", tool)
	}
	tab, err := readTable(path)
	if err != nil {
		t.Fatal(err)
	}
	tab.head = head
	return tab
}

// finish writes the table, or checks that each row was counted.
func (tab *table) finish(t *testing.T) {
	t.Helper()
	if t.Failed() {
		return
	}
	if strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		maps.Copy(tab.used, allOf(tab.rows)) // only some scenarios ran
	}
	if *update {
		if err := tab.write(); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, name := range tab.unused() {
		t.Errorf("%s: %s has a budget, but was not counted", tab.path, name)
	}
}

func allOf(rows map[string]budget) map[string]bool {
	all := make(map[string]bool)
	for name := range rows {
		all[name] = true
	}
	return all
}

// The cost of a command includes neither the start of the process nor disturbances of
// single runs.
func TestPerCommand(t *testing.T) {
	const start, each = 1000, 7
	disturbed := []float64{90, 0, 0, 500} // the additional costs of the runs, in order
	r := func(_ *testing.T, times int) (int, counts) {
		extra := disturbed[0]
		disturbed = disturbed[1:]
		commands := 100 * times
		return commands, counts{"x": start + each*float64(commands) + extra, "y": start}
	}
	var p pair
	p.add(t, r)
	p.add(t, r)
	if got := p.perCommand(); got["x"] != each || got["y"] != 0 || len(got) != 2 {
		t.Errorf("a command takes %v, want %d of x and no y", got, each)
	}
}
