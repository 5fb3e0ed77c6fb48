package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A part is a command that the night runs.
type part struct {
	area       string // area of the code whose changes this part tests
	name       string // name of the test or check
	command    []string
	lengthFlag string // flag for the duration, such as "-for"; empty if the length is fixed
}

func (p part) String() string { return p.area + ": " + p.name }

// once contains the parts with a fixed length, in the order in which they run.
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
	{area: "console", name: "browser, axe", command: []string{"make", "browser", "LONG=1"}},

	all("server", "./internal/test/sim", "TestEveryCallFails"),
	all("journal", "./internal/test/sim", "TestAdopt"),
	all("journal", "./internal/journal", "TestMembersPlanted"),
	{area: "journal", name: "small size", command: test("./internal/journal", "TestSize$", "-seeds=50000")},
	all("cluster", "./internal/cluster", "TestPlanted"),
	all("cluster", "./internal/cluster", "TestPlantedClients"),
	all("cluster", "./internal/cluster/core", "TestPlanted"),
	all("cluster", "./internal/cluster/core", "TestPlantedRoles"),
	{area: "process", name: "descriptors, memory", command: test("./internal/test/soak", "(TestDescriptors|TestMemoryIsFreed)$", "-count=3")},
	{area: "clients", name: "./client cuts", command: test("./client", "TestCut", "-seeds=20")},
	all("console", "./internal/console", "TestNonsense"),
	rapid("engine", "./internal/engine", "TestStateMachine"),
	rapid("engine", "./internal/engine/heap", "TestHeap"),
	rapid("journal", "./internal/wal", "TestRandomUse"),
	rapid("journal", "./internal/journal/record", "TestRoundTrip"),
	rapid("server", "./internal/conversation", "TestAnyPieces"),
	rapid("server", "./internal/conversation", "TestInput"),
	rapid("server", "./internal/server", "TestSocketsAndStreamsAgree"),

	{area: "packages", name: "release", command: []string{"make", "release"}},
}

// last contains the parts that run after all others, because our package replaces the
// package beanstalkd, which other parts need.
var last = []part{
	{area: "packages", name: "Debian and RPM", command: []string{"dist/package/test"}},
}

// long contains the tests that run for a given time.
var long = slices.Concat(
	timed("journal", "./internal/test/sim", "TestPower", "TestFullDisk", "TestStorm", "TestSameAnswers"),
	timed("server", "./internal/test/sim", "TestClients", "TestClientsOfLoops", "TestShortLivedClientsWhileDiskFails"),
	timed("journal", "./internal/wal", "TestPowerCut", "TestEveryCallFails", "TestDeathWhileFailed"),
	timed("journal", "./internal/journal", "TestMembers"),
	timed("engine", "./internal/engine", "TestRandom", "TestRandomLong", "TestRestoreRandom", "TestSlicesRandom"),
	timed("server", "./internal/broker", "TestRandom"),
	timed("cluster", "./internal/cluster", "TestLives", "TestClients", "TestRestoredInAnyOrder", "TestAdversaries"),
	timed("cluster", "./internal/cluster/core", "TestSimulation", "TestMembers", "TestAdversaries"),
	timed("cluster", "./internal/cluster/raftlog", "TestPowerCuts", "TestFailingCalls"),
	timed("clients", "./internal/test/conformance", "TestTwin"),
	timed("process", "./internal/test/soak", "TestSoak", "TestCrash", "TestRestart"),
	timed("clients", "./internal/wire", "TestPlainLines"),
	timed("cluster", "./internal/test/soak", "TestCluster"),
)

func env(args ...string) []string { return append([]string{"env"}, args...) }

func module(dir string) []string {
	return []string{"sh", "-c", "cd " + dir + " && go vet ./... && go test -count=1 -timeout=20m ./..."}
}

func test(pkg, name string, flags ...string) []string {
	return append([]string{"go", "test", "-vet=off", "-count=1", "-timeout=0", "-v", pkg, "-run=^" + name}, flags...)
}

// all returns a test that tries all cases if -seeds is set.
func all(area, pkg, name string) part {
	return part{area: area, name: pkg + " " + name, command: test(pkg, name+"$", "-seeds=1")}
}

func rapid(area, pkg, name string) part {
	return part{area: area, name: pkg + " " + name, command: test(pkg, name+"$", "-rapid.checks=20000")}
}

func timed(area, pkg string, names ...string) (parts []part) {
	for _, name := range names {
		parts = append(parts, part{area: area, name: pkg + " " + name, command: test(pkg, name+"$"), lengthFlag: "-for"})
	}
	return parts
}

var fuzzTarget = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)

// fuzzTargets returns the fuzz targets of the module.
func fuzzTargets() (parts []part, err error) {
	err = filepath.WalkDir(".", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := os.ReadFile(file)
		for _, m := range fuzzTarget.FindAllSubmatch(text, -1) {
			pkg, name := "./"+filepath.Dir(file), string(m[1])
			parts = append(parts, part{area: "fuzz", name: pkg + " " + name, lengthFlag: "-fuzztime",
				command: []string{"go", "test", "-vet=off", "-timeout=0", pkg, "-run=^$", "-parallel=1", "-fuzz=^" + name + "$"}})
		}
		return err
	})
	return parts, err
}

// lasting returns the part's command with a duration.
func (p part) lasting(d time.Duration) []string {
	if p.lengthFlag == "" {
		return p.command
	}
	return append(slices.Clone(p.command), p.lengthFlag+"="+d.String())
}
