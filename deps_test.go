package beanpole_test

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/beanpole-mq/beanpole/"

// arrows is the architecture: which of our packages a package may import. It is
// a statement of policy; do not change it to make a build pass. What is not
// here does not exist, and a package may import only what its line names.
// Modules of others are named by their first elements.
var arrows = map[string]string{
	// The pure rooms import none of ours.
	"internal/engine": "",
	"internal/wire":   "",
	"internal/vfs":    "golang.org/x/sys",
	"internal/epoll":  "golang.org/x/sys",

	// Toward the disk.
	"internal/vfs/memfs":   "internal/vfs",
	"internal/vfs/faultfs": "internal/vfs",
	"internal/vfs/vfstest": "internal/vfs",
	"internal/wal":         "internal/vfs golang.org/x/sync",
	"internal/binlog":      "internal/engine internal/vfs",
	"internal/journal":     "internal/binlog internal/engine internal/vfs internal/wal",

	// The turn, and toward clients.
	"internal/broker": "internal/engine",
	"internal/server": "internal/broker internal/engine internal/epoll internal/wire golang.org/x/sys golang.org/x/time github.com/coreos/go-systemd",

	// Judges and tools. conformance needs an address only.
	"internal/load":          "internal/epoll internal/wire github.com/HdrHistogram golang.org/x/sync golang.org/x/sys",
	"internal/load/scale":    "internal/load internal/wire golang.org/x/sync",
	"internal/budget":        "",
	"internal/budget/driver": "internal/broker internal/engine internal/journal internal/vfs internal/wire",
	"internal/conformance":   "",
	"internal/sim":           "",

	// The only place where the pieces meet.
	"cmd/beanpole": "internal/binlog internal/broker internal/engine internal/journal internal/load internal/load/scale internal/server internal/vfs internal/wal internal/wire " +
		"github.com/coreos/go-systemd github.com/spf13",
}

// TestImports holds the packages, tests apart, against arrows.
func TestImports(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if p.ImportPath+"/" == module {
			continue // this test
		}
		seen[name] = true
		allowed, ok := arrows[name]
		if !ok {
			t.Errorf("%s is not in arrows: say what it may import", name)
			continue
		}
		for _, imp := range p.Imports {
			if short := strings.TrimPrefix(imp, module); foreign(imp) && !allows(allowed, short) {
				t.Errorf("%s imports %s, which is against the design", name, short)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(arrows)) {
		if !seen[name] {
			t.Errorf("arrows speaks of %s, which does not exist", name)
		}
	}
}

// foreign reports whether an import is not of the standard library.
func foreign(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return strings.Contains(first, ".")
}

func allows(allowed, imp string) bool {
	return slices.ContainsFunc(strings.Fields(allowed), func(a string) bool {
		return imp == a || !strings.HasPrefix(a, "internal/") && strings.HasPrefix(imp, a+"/")
	})
}

type goPackage struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatal("go list:", err)
	}
	var all []goPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		}
		all = append(all, p)
	}
}
