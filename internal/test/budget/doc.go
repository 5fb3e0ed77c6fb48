// Package budget finds regressions of speed without a clock. It counts the instructions,
// system calls and allocations of commands, and compares the counts with recorded
// budgets. It contains only tests, and the program that they measure.
//
//	make budget              count and compare
//	make budget UPDATE=1     count and record new budgets
//
// # Counts
//
//   - Instructions in user mode, with valgrind: of the driver (driver/), which executes
//     commands in conversation, broker, engine and journal in one goroutine, and of the
//     server under the load of `beanpole bench` (instructions_test.go).
//   - System calls of the server, with strace (syscalls_test.go).
//   - Allocations of the driver (driver/driver_test.go). Other packages have their own
//     budgets, in tests with Alloc in their names. These tests always run; the other counts
//     run only with -budget.count.
//
// Without valgrind or strace, the test is skipped with a message.
//
// # Method
//
// Each scenario runs twice, the second time with twice the commands. The count for a
// command is the difference between the two runs, divided by the number of additional
// commands. So it does not include the cost of the start. If the count exceeds the
// budget, both runs are repeated up to twice, and the smallest counts are used: other
// processes, the Go scheduler and the timing of input can only increase a count
// (count_test.go).
//
// The tool is cachegrind. Callgrind fails on the Go runtime's signals, and mistakes stack
// switches for calls. Two counts of the driver differ by about 0.1 %, or by 1 % with a
// journal. Garbage collection is off, because it would add only to some runs.
//
// # The budgets
//
// The budgets are in testdata. There is one file for system calls, and a file of
// instructions for each version of Go and each architecture, because compilers differ. A
// line has a name, a count per command, and a tolerance in percent (table_test.go). If a
// count is lower than the budget by more than the tolerance and 10 %, the test requests a
// lower budget.
//
// UPDATE=1 runs each scenario three times. It keeps the tolerances, which you edit
// manually. Commit the file with the change that affects a count, and explain an
// increase. With a new version of Go, the test is skipped until UPDATE=1 has written its
// file. Then delete the file of the old version.
//
// To profile instructions, run the driver directly:
//
//	go build ./internal/test/budget/driver
//	valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=counts \
//		./driver -scenario put-reserve-delete
//	cg_annotate counts
//
// # Limits
//
// The package measures no time, so it does not detect the effects of caches, waiting,
// disks, or competition for CPUs. `beanpole bench` measures those.
package budget
