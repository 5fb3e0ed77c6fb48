package beanpole_test

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/beanpole-mq/beanpole/"

// arrows defines the architecture. For each package, it lists the packages of this module
// and the external modules that the package imports, except in its tests. It is a policy,
// so do not change it just to make a build pass. It lists every package, and each
// permitted import is used on at least one system. External modules are named by the
// first elements of their paths.
var arrows = map[string]string{
	// These packages are pure.
	"internal/duration":         "",
	"internal/engine/histogram": "",
	"internal/engine":           "internal/engine/heap internal/engine/histogram",
	"internal/engine/heap":      "",
	"internal/rights":           "",
	"internal/wire":             "internal/rights",
	"internal/vfs":              "",
	"internal/server/epoll":     "golang.org/x/sys",
	"internal/memnet":           "internal/server/epoll",
	"internal/exit":             "",
	"internal/flags":            "github.com/spf13",

	// These packages use the disk.
	"internal/wal":            "internal/vfs",
	"internal/history":        "internal/vfs",
	"internal/journal/binlog": "internal/engine internal/vfs internal/wire",
	"internal/journal/record": "internal/engine",
	"internal/journal":        "internal/journal/binlog internal/engine internal/journal/record internal/vfs internal/wal",

	// These packages execute turns and serve clients.
	"internal/broker":                  "internal/engine internal/engine/histogram",
	"internal/conversation/proxyproto": "",
	"internal/server/ratelog":          "golang.org/x/time",
	"internal/access":                  "internal/rights",
	"internal/policy":                  "internal/access internal/duration internal/engine internal/jsonscan internal/wire",
	"internal/schedule":                "internal/duration internal/engine internal/wire",
	"internal/conversation":            "internal/access internal/broker internal/engine internal/engine/heap internal/conversation/proxyproto internal/rights internal/wire",
	"internal/server":                  "internal/access internal/broker internal/conversation internal/engine internal/server/epoll internal/engine/heap internal/engine/histogram internal/conversation/proxyproto internal/server/ratelog internal/wire golang.org/x/sys golang.org/x/time",

	"internal/admin":           "client/admin internal/access internal/api internal/api/tubes internal/broker internal/certs internal/engine internal/health internal/engine/histogram internal/rights internal/server github.com/prometheus",
	"internal/console":         "client/admin internal/access internal/decode internal/duration internal/gzipped internal/health internal/op internal/query internal/schedule golang.org/x/sync",
	"internal/query":           "internal/op",
	"internal/decode":          "internal/jsonscan github.com/tinylib/msgp",
	"internal/api":             "client/admin internal/access internal/api/audit internal/api/list internal/api/task internal/api/tubes internal/broker internal/decode internal/engine internal/gzipped internal/health internal/history internal/jobjson internal/op internal/jsonscan internal/policy internal/schedule internal/query internal/rights internal/server internal/wire",
	"internal/api/audit":       "client/admin internal/access internal/history",
	"internal/api/list":        "",
	"internal/api/task":        "internal/op client/admin internal/api/audit",
	"internal/api/tubes":       "client/admin internal/access internal/api/list internal/engine internal/health golang.org/x/sync",
	"internal/admin/connlimit": "",
	"internal/adminsocket":     "",
	"internal/certs":           "",
	"internal/gzipped":         "",
	"internal/certs/localca":   "",

	"internal/health":   "client/admin/apitype",
	"internal/jobjson":  "client/admin internal/decode internal/engine internal/op",
	"internal/op":       "",
	"internal/jsonscan": "",

	// These packages form the cluster.
	"internal/cluster/raftlog":     "internal/vfs internal/wal go.etcd.io/raft",
	"internal/cluster/core":        "internal/cluster/raftlog go.etcd.io/raft google.golang.org/protobuf",
	"internal/cluster/entry":       "internal/engine internal/journal/record",
	"internal/cluster":             "client/admin/apitype internal/broker internal/cluster/core internal/cluster/entry internal/cluster/raftlog internal/engine internal/journal internal/vfs internal/wal go.etcd.io/raft golang.org/x/sys golang.org/x/time",
	"internal/cluster/consistency": "client/admin/apitype internal/engine",
	"internal/cluster/directory":   "internal/vfs",
	"internal/cluster/mux":         "",
	"internal/cluster/transport":   "internal/access internal/cluster internal/cluster/directory internal/cluster/raftlog internal/cluster/mux go.etcd.io/raft golang.org/x/time google.golang.org/protobuf",

	"internal/cluster/control": "client/admin/apitype internal/cluster internal/cluster/consistency internal/cluster/directory internal/cluster/raftlog internal/cluster/transport",

	// These packages are for other programs. contrib contains no code, and its tests
	// compare it with the program.
	"contrib":              "",
	"client":               "internal/certs internal/wire",
	"client/admin":         "client/admin/apitype internal/adminsocket internal/op",
	"client/admin/apitype": "",
	"client/worker":        "client",
	"client/beanpoletest":  "internal/access internal/broker internal/certs/localca internal/engine internal/rights internal/server internal/memnet",

	// These packages contain tests and their helpers. conformance needs only an address.
	"internal/test/budget":              "",
	"internal/test/budget/driver":       "internal/broker internal/conversation internal/engine internal/journal internal/vfs internal/wire",
	"internal/test/conformance":         "internal/test/exectest internal/test/freeport",
	"internal/test/conformance/interop": "",
	"internal/test/exectest":            "",
	"internal/test/faultfs":             "internal/vfs",
	"internal/test/freeport":            "golang.org/x/sys",
	"internal/test/ledger":              "",
	"internal/test/memfs":               "internal/vfs",
	"internal/test/netns":               "",
	"internal/test/night":               "golang.org/x/sync",
	"internal/test/seeds":               "",
	"internal/test/sim":                 "",
	"internal/test/soak":                "",
	"internal/test/vfstest":             "internal/vfs",

	// These packages contain the server process, which connects the others, and its
	// settings.
	"internal/config":          "internal/exit internal/flags internal/adminsocket internal/access internal/admin internal/certs internal/duration internal/engine internal/history internal/policy internal/schedule internal/rights internal/server internal/wal internal/wire github.com/BurntSushi/toml github.com/spf13",
	"internal/daemon/asynclog": "",
	"internal/daemon": "internal/exit internal/adminsocket client/admin internal/access internal/admin internal/api internal/admin/connlimit internal/broker internal/certs internal/advice internal/cluster internal/cluster/control internal/cluster/directory " +
		"internal/cluster/mux internal/cluster/raftlog internal/cluster/transport internal/config internal/console internal/daemon/asynclog internal/engine internal/engine/histogram internal/history internal/journal internal/policy internal/schedule internal/server/ratelog internal/server " +
		"internal/vfs internal/wire github.com/coreos/go-systemd",

	// These packages contain the commands. Their shared code imports no command.
	"internal/cli/cliutil": "internal/flags internal/exit internal/adminsocket client client/admin internal/certs internal/duration github.com/charmbracelet github.com/spf13",
	"internal/advice":      "internal/exit internal/cluster internal/cluster/directory internal/journal internal/vfs internal/wal",
	"internal/cli/queue":   "internal/access internal/op internal/flags internal/exit client client/admin client/worker internal/cli/cliutil internal/cli/top internal/health internal/jobjson github.com/charmbracelet github.com/spf13",
	"internal/cli/top":     "internal/op client client/admin internal/cli/cliutil internal/health charm.land/bubbletea github.com/charmbracelet",
	"internal/cli/journal": "internal/op internal/exit client/admin internal/journal/binlog internal/journal/record internal/advice internal/cli/cliutil internal/engine internal/jobjson internal/journal internal/vfs internal/wal github.com/spf13",
	"internal/cli/cluster": "internal/exit client/admin internal/advice internal/cli/cliutil internal/cluster internal/cluster/consistency internal/cluster/control internal/cluster/directory internal/cluster/raftlog internal/cluster/transport internal/vfs github.com/spf13",
	"internal/cli/bench":   "internal/flags client internal/cli/cliutil github.com/HdrHistogram github.com/spf13 golang.org/x/sync",

	// These packages form the program, which converts a command line into an exit code.
	"internal/cli": "internal/flags internal/exit internal/access internal/cli/bench internal/cli/cluster internal/cli/journal internal/cli/cliutil internal/cli/queue internal/config internal/daemon internal/daemon/asynclog github.com/spf13",
	"cmd/beanpole": "internal/cli",
}

// TestDecided checks that the decision about dependencies has a reason for each module
// that go.mod requires.
func TestDecided(t *testing.T) {
	page, err := os.ReadFile("doc/decisions/0001-dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "list", "-m", "-f", "{{if not (or .Indirect .Main)}}{{.Path}}{{end}}", "all").Output()
	if err != nil {
		t.Fatal("go list:", err)
	}
	for _, path := range strings.Fields(string(out)) {
		if !regexp.MustCompile(`(?m)^\| .*\b` + regexp.QuoteMeta(path) + `\b`).Match(page) {
			t.Errorf("doc/decisions/0001-dependencies.md has no line about %s", path)
		}
	}
}

// systems contains the supported operating systems.
var systems = []string{"linux", "darwin", "freebsd"}

// TestImports compares the packages with arrows.
func TestImports(t *testing.T) {
	imports := importsOf(t)
	for _, name := range slices.Sorted(maps.Keys(imports)) {
		line, ok := arrows[name]
		if !ok {
			t.Errorf("%s is not in arrows: add its imports", name)
			continue
		}
		permitted := strings.Fields(line)
		used := make([]bool, len(permitted))
		for imp := range imports[name] {
			i := slices.IndexFunc(permitted, func(p string) bool { return permits(p, imp) })
			if i < 0 {
				t.Errorf("%s imports %s, which arrows does not permit", name, imp)
				continue
			}
			used[i] = true
		}
		for i, p := range permitted {
			if !used[i] {
				t.Errorf("%s does not import %s: remove it from arrows", name, p)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(arrows)) {
		if imports[name] == nil {
			t.Errorf("arrows lists %s, which does not exist", name)
		}
		for _, not := range never {
			for _, p := range strings.Fields(arrows[name]) {
				if below(not.from, name) && below(not.to, p) && p != "client/admin/apitype" {
					t.Errorf("arrows permits %s to import %s: no package of %s imports one of %s", name, p, not.from, not.to)
				}
			}
		}
	}
}

// never lists imports that arrows must not permit. from and to include all packages below
// them.
var never = []struct{ from, to string }{
	{"client", "internal/test"},
	{"internal/config", "internal/cli"},
	{"internal/daemon", "internal/cli"},
	{"internal/cluster", "client"},
	{"internal/health", "client"},
}

// below reports whether a package is dir or inside it.
func below(dir, name string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// permits reports whether a word of arrows permits an import. An external module permits
// all its packages; a package of this module permits only itself.
func permits(word, imp string) bool {
	return imp == word || foreign(word) && strings.HasPrefix(imp, word+"/")
}

// importsOf returns the imports of each package on all systems, without the standard
// library. Packages of this module are named by their paths in the module.
func importsOf(t *testing.T) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	for _, system := range systems {
		for _, p := range packages(t, system) {
			name, ours := strings.CutPrefix(p.ImportPath, module)
			if !ours {
				continue // the package that contains this test
			}
			if all[name] == nil {
				all[name] = map[string]bool{}
			}
			for _, imp := range p.Imports {
				if foreign(imp) {
					all[name][strings.TrimPrefix(imp, module)] = true
				}
			}
		}
	}
	return all
}

// foreign reports whether an import is not in the standard library.
func foreign(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return strings.Contains(first, ".")
}

type goPackage struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T, system string) []goPackage {
	t.Helper()
	list := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	list.Env = append(list.Environ(), "GOOS="+system)
	out, err := list.Output()
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
