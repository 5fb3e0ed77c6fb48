// Package bench compares two servers. It starts them in turn, runs the same experiments
// on both, and writes Go benchmark results. The program in compare is its command line.
//
// # The experiments
//
// Suites are tables of loads (package load): memory, for servers without a log; journal,
// for servers with a log; and crowd, in which idle tubes or connections burden a server.
// Footprint measures the memory of a long queue and of delayed and buried jobs, and
// whether memory is released. Restart measures the time from a crash to the first reply.
//
// # The method
//
// A round is a trial on A, on B, and on the responder if there is one. The servers take
// turns, so that no server profits from a quiet period of the machine. Each trial starts
// a new process.
//
// The responder only answers commands, so its cost is the share of system calls in every
// server's cost.
//
// Generator and server share the processors of one machine, so compare A with B, but not
// with results from another machine. Memory and CPU time come from /proc. load.Run checks
// every reply, and the jobs are counted.
//
// Start reading at experiment.go and trial.go, then suites.go.
package bench
