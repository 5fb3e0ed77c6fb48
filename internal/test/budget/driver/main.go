// Command driver executes commands without sockets, garbage collection, or a moving
// clock, and with one goroutine. So an instruction counter counts the same number in each
// run. Package budget runs it. For a profiler, run it directly:
//
//	go build ./internal/test/budget/driver
//	./driver -list
//	valgrind --tool=cachegrind --cache-sim=no ./driver -scenario put-reserve-delete
//
// A command passes through the same code as in the server: a conversation, a turn of the
// broker, the engine, and the journal if there is one (client.go). Only the event loop
// and its sockets are missing; other tests count them with the whole server. The client's
// commands are prepared in advance, and only the numbers in them change (script.go). If a
// command fails, the driver panics, so that no failure is measured. Start reading at
// scenarios.go.
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
	times := flag.Int("times", 1, "multiple of the usual number of operations; 0 runs only the preparation")
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

// run runs a scenario and prints the number of commands.
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
