// Package budget catches regressions without a clock. It counts what a command
// costs, in instructions, system calls and allocations, and compares the counts
// with recorded budgets. It has tests only, and the program that they count.
//
//	make budget              count, and compare
//	make budget UPDATE=1     count, and record the counts as the new budgets
//
// # What is counted
//
//   - Instructions, by valgrind, without the kernel's: of the driver (driver/),
//     which takes commands through conversation, broker, engine and journal in
//     one goroutine, and of the whole server under the load of `beanpole bench`
//     (instructions_test.go).
//   - System calls of the whole server, by strace (syscalls_test.go).
//   - Allocations of what the driver does (driver/driver_test.go). Other packages
//     have budgets of their own, in tests with Alloc in their names. These tests
//     run with all others; the counts run only with -budget.count.
//
// Where valgrind or strace is not installed, the test is skipped with a message.
//
// # How it is counted
//
// Each scenario runs twice, the second time with twice the commands. The count
// of a command is the difference of the two runs, divided by the number of
// additional commands: so the cost of the start is not in it. If the count is
// over the budget, both runs are repeated, twice at most, and the smallest counts
// are used: other processes, the Go scheduler and the moment at which input
// arrives can only add to a run (count_test.go).
//
// The tool is cachegrind. Callgrind dies of the Go runtime's signals, and mistakes
// its switches of stacks for calls. Two counts of the driver differ by about a
// thousandth, with a journal by a hundredth. Garbage collection is off: it
// would fall into some runs and not into others.
//
// # The budgets
//
// They are in testdata. System calls have one file. Instructions have a file for
// each version of Go and each architecture, because the compiler makes a
// difference. A line is a name, a count per command, and the tolerance: by how
// many percent a count may be higher (table_test.go). When a count is lower by
// more than the tolerance and a tenth, the test asks for a lower budget.
//
// UPDATE=1 runs everything three times. It keeps the tolerances; change those by
// hand. Commit the file with the change that moved a count, and say why if the
// count went up. A new version of Go has no file: the test is skipped until
// UPDATE=1 has made one. The file of the old version can go then.
//
// To see where instructions go, run the driver by hand:
//
//	go build ./internal/test/budget/driver
//	valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=counts \
//		./driver -scenario put-reserve-delete
//	cg_annotate counts
//
// # What it does not do
//
// It measures no time, so it does not see caches, waiting, disks, or how
// connections compete for processors. `beanpole bench` measures those.
package budget
