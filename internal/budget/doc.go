// Package budget catches regressions without a clock: it counts what a command
// costs, in instructions, system calls and allocations, and holds that against
// what is written down. It has tests only, and the program that they count.
//
//	make budget              count, and compare
//	make budget UPDATE=1     write down what was counted
//
// # What is counted
//
//   - Instructions of the driver (driver/), which takes commands through parser,
//     broker, engine and journal in one goroutine, and of the whole server under
//     the load of `beanpole bench` (instructions_test.go). Valgrind counts
//     them, the kernel's apart.
//   - System calls of the whole server (syscalls_test.go). Strace counts them.
//   - Allocations of what the driver does (driver/driver_test.go); other rooms
//     have budgets of their own, in tests with Alloc in their names. These run
//     with all other tests; the counts run only with -budget.count.
//
// Where valgrind or strace is not installed, its part is skipped with a message.
//
// # How it is counted
//
// Each scenario runs twice, the second time with twice the commands, and what
// counts is the difference, divided by the commands that were more: so what a
// start costs is not in it. If that is over the budget both run again, two times
// at most, and the least of each counts: other processes, the Go scheduler and
// the moment at which input arrives only ever add to a run. (count_test.go)
//
// Cachegrind counts, and not callgrind: that dies of the Go runtime's signals,
// and takes its switches of stacks for calls. Two counts of the driver differ by
// about a thousandth, with a journal by a hundredth. Garbage collection is off
// there, not in the server.
//
// # The budgets
//
// They are in testdata: the instructions in a file for each version of Go and
// architecture, for the compiler's work is in them, and the system calls in
// another. A line is a name, a count per command and how far above it is borne,
// in percent (table_test.go). Who makes something cheaper by more than those
// percents, and a tenth, is asked to lower its budget. UPDATE=1 runs all three
// times and keeps the percents, which are changed by hand; commit the file with
// the change that moved it, and say why if it went up.
//
// A new version of Go has no file: the test is skipped until UPDATE=1 has made
// it. The old one can go then.
//
// To see where instructions go, run the driver by hand:
//
//	go build ./internal/budget/driver
//	valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=counts \
//		./driver -scenario put-reserve-delete
//	cg_annotate counts
//
// # What it does not do
//
// It sees no time: neither caches, waiting and disks, nor how connections and
// processors get on with each other. `beanpole bench` is for those.
package budget
