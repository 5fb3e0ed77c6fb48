package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A part is one thing that the night runs.
type part struct {
	area    string   // what a change touches that makes this part worth while
	name    string   // of the test, or of what is looked into
	command []string // without the time of a part that goes on
	goesOn  string   // the flag that says how long, such as "-for"; "": it is run once
}

func (p part) String() string { return p.area + ": " + p.name }

// once are parts with an end of their own, in the order in which they run.
var once = []part{
	{area: "systems", name: "macOS", command: env("GOOS=darwin", "go", "vet", "./...")},
	{area: "systems", name: "FreeBSD", command: env("GOOS=freebsd", "go", "vet", "./...")},
	{area: "systems", name: "arm64", command: env("GOARCH=arm64", "go", "vet", "./...")},
	{area: "systems", name: "32 bits", command: []string{"make", "test-32"}},
	{area: "security", name: "gosec", command: []string{"make", "scan"}},
	{area: "security", name: "govulncheck", command: []string{"make", "vulncheck"}},
	{area: "race", name: "all packages", command: []string{"go", "test", "-vet=off", "-count=1", "-timeout=0", "-short", "-race", "./..."}},
	{area: "clients", name: "all clients, TLS, a follower", command: []string{"make", "interop", "LONG=1"}},
	{area: "modules", name: "bench", command: module("bench")},
	{area: "kubernetes", name: "manifests and compose", command: module("contrib/kubernetes")},
	{area: "console", name: "browser, axe", command: []string{"make", "browser", "LONG=1"}},

	all("server", "./internal/test/sim", "TestEveryCallFails"),
	all("journal", "./internal/test/sim", "TestAdopt"),
	all("journal", "./internal/journal", "TestMembersPlanted"),
	{area: "journal", name: "small whatever goes on", command: test("./internal/journal", "TestSize$", "-seeds=50000")},
	all("cluster", "./internal/cluster", "TestPlanted"),
	all("cluster", "./internal/cluster/core", "TestPlanted"),
	all("cluster", "./internal/cluster/core", "TestPlantedSnapshots"),
	all("cluster", "./internal/cluster/core", "TestPlantedRoles"),
	{area: "process", name: "descriptors, memory that comes back", command: test("./internal/test/soak", "(TestDescriptors|TestMemoryComesBack)$", "-count=3")},
	{area: "clients", name: "./client cuts", command: test("./client", "TestCut", "-seeds=20")},
	all("console", "./internal/console", "TestNonsense"),
	rapid("engine", "./internal/engine", "TestStateMachine"),
	rapid("engine", "./internal/engine/heap", "TestHeap"),
	rapid("journal", "./internal/wal", "TestRandomUse"),
	rapid("journal", "./internal/journal/record", "TestRoundTrip"),
	rapid("journal", "./internal/journal/binlog", "TestRoundTrip"),
	rapid("server", "./internal/conversation", "TestAnyPieces"),
	rapid("server", "./internal/conversation", "TestInput"),
	rapid("server", "./internal/server", "TestSocketsAndStreamsAgree"),

	{area: "packages", name: "release", command: []string{"make", "release"}},
}

// last are parts that run when all others have ended: our package takes the place of
// beanstalkd's, which other parts need.
var last = []part{
	{area: "packages", name: "Debian and RPM", command: []string{"dist/package/test"}},
}

// long are parts that go on as long as they are let.
var long = []part{
	goOn("journal", "./internal/test/sim", "TestPower"),
	goOn("journal", "./internal/test/sim", "TestFullDisk"),
	goOn("journal", "./internal/test/sim", "TestStorm"),
	goOn("journal", "./internal/test/sim", "TestSameAnswers"),
	goOn("server", "./internal/test/sim", "TestClients"),
	goOn("server", "./internal/test/sim", "TestClientsOfLoops"),
	goOn("server", "./internal/test/sim", "TestShortLivedClientsWhileDiskFails"),
	goOn("journal", "./internal/wal", "TestPowerCut"),
	goOn("journal", "./internal/wal", "TestEveryCallFails"),
	goOn("journal", "./internal/wal", "TestDeathWhileFailed"),
	goOn("journal", "./internal/journal", "TestMembers"),
	goOn("engine", "./internal/engine", "TestRandom"),
	goOn("engine", "./internal/engine", "TestRandomLong"),
	goOn("engine", "./internal/engine", "TestRestoreRandom"),
	goOn("engine", "./internal/engine", "TestFollow"),
	goOn("engine", "./internal/engine", "TestSlicesRandom"),
	goOn("server", "./internal/broker", "TestRandom"),
	goOn("cluster", "./internal/cluster", "TestLives"),
	goOn("cluster", "./internal/cluster", "TestAdversaries"),
	goOn("cluster", "./internal/cluster/core", "TestSimulation"),
	goOn("cluster", "./internal/cluster/core", "TestMembers"),
	goOn("cluster", "./internal/cluster/core", "TestAdversaries"),
	goOn("cluster", "./internal/cluster/raftlog", "TestPowerCuts"),
	goOn("cluster", "./internal/cluster/raftlog", "TestFailingCalls"),
	goOn("clients", "./internal/test/conformance", "TestTwin"),
	goOn("process", "./internal/test/soak", "TestSoak"),
	goOn("process", "./internal/test/soak", "TestCrash"),
	goOn("process", "./internal/test/soak", "TestRestart"),
	goOn("clients", "./internal/wire", "TestPlainLines"),
	goOn("cluster", "./internal/test/soak", "TestCluster"),
}

func env(args ...string) []string { return append([]string{"env"}, args...) }

func module(dir string) []string {
	return []string{"sh", "-c", "cd " + dir + " && go vet ./... && go test -count=1 -timeout=20m ./..."}
}

func test(pkg, name string, flags ...string) []string {
	return append([]string{"go", "test", "-vet=off", "-count=1", "-timeout=0", "-v", pkg, "-run=^" + name}, flags...)
}

// all is a test that goes through all there is if it is asked for more than the usual.
func all(area, pkg, name string) part {
	return part{area: area, name: pkg + " " + name, command: test(pkg, name+"$", "-seeds=1")}
}

func rapid(area, pkg, name string) part {
	return part{area: area, name: pkg + " " + name, command: test(pkg, name+"$", "-rapid.checks=20000")}
}

func goOn(area, pkg, name string) part {
	return part{area: area, name: pkg + " " + name, command: test(pkg, name+"$"), goesOn: "-for"}
}

var fuzzTarget = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)

// fuzz are the fuzz targets of the tree.
func fuzz() (parts []part, err error) {
	files, err := filepath.Glob("*/*_test.go")
	for pattern := "*/*/*_test.go"; err == nil && len(pattern) < 40; pattern = "*/" + pattern {
		var more []string
		more, err = filepath.Glob(pattern)
		files = append(files, more...)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		pkg := "./" + filepath.Dir(file)
		for _, m := range fuzzTarget.FindAllSubmatch(text, -1) {
			name := string(m[1])
			parts = append(parts, part{area: "fuzz", name: pkg + " " + name, goesOn: "-fuzztime",
				command: []string{"go", "test", "-vet=off", "-timeout=0", pkg, "-run=^$", "-parallel=1", "-fuzz=^" + name + "$"}})
		}
	}
	return parts, err
}

// chosen are the parts that a regular expression names.
func chosen(parts []part, only *regexp.Regexp) []part {
	return slices.DeleteFunc(slices.Clone(parts), func(p part) bool { return !only.MatchString(p.String()) })
}

// lasting returns the command of a part, for so long.
func (p part) lasting(d time.Duration) []string {
	if p.goesOn == "" {
		return p.command
	}
	return append(slices.Clone(p.command), p.goesOn+"="+d.String())
}

// again is the command that repeats a run that failed.
func (p part) again(d time.Duration, output string) string {
	if m := againWith.FindStringSubmatch(output); m != nil {
		return "go test " + p.command[slices.Index(p.command, "-v")+1] + " " + m[1]
	}
	return strings.Join(p.lasting(d), " ")
}
