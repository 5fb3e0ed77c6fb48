// Command driver takes commands through the rooms of the server, and nothing
// else happens in its process: no sockets, one goroutine at work, no garbage
// collection, a clock that is set by hand. So an instruction counter sees the
// same number each time. Package budget runs it; by hand it is for profilers:
//
//	go build ./internal/test/budget/driver
//	./driver -list
//	valgrind --tool=cachegrind --cache-sim=no ./driver -scenario put-reserve-delete
//
// A command goes the way it goes in the server: through a conversation, a turn of
// the broker, a verb of the engine, and the journal where there is one (client.go).
// Only the event loop and its sockets are missing; they are counted with the whole
// server. What a client says is made once, before, and only its numbers change
// (script.go). A command that does not succeed panics: nothing is measured by
// mistake. What there is to measure is in scenarios.go: start there.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
)

func main() {
	list := flag.Bool("list", false, "print the names of the scenarios")
	name := flag.String("scenario", "", "the scenario to run")
	times := flag.Int("times", 1, "how many times the usual number of operations; 0: none, only what comes before")
	dir := flag.String("dir", "", "an empty directory for the journal")
	flag.Parse()
	if *list {
		for _, s := range scenarios {
			fmt.Println(s.name)
		}
		return
	}
	if err := run(*name, *times, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "driver:", err)
		os.Exit(1)
	}
}

// run runs a scenario and prints how many commands that were.
func run(name string, times int, dir string) error {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	for _, s := range scenarios {
		if s.name != name {
			continue
		}
		q := newQueue(dir, s.segment)
		operation := s.prepare(q)
		for range times * s.operations {
			operation()
		}
		fmt.Println(times * s.operations * s.commands)
		return q.Close()
	}
	return fmt.Errorf("there is no scenario %q", name)
}
