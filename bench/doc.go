// Package bench compares two servers: it starts them in turn, runs the same experiments
// on both, and writes tables of the results. The program in compare is its command line.
//
// Data flows one way. Options name the servers and the sizes. The trial of an Experiment
// measures figures on one server, and gives each its name, unit and value in one place. Run
// runs it on each server in each round. A Report has the figures of all rounds.
//
// # The experiments
//
// Suites are tables of loads (package load): memory, for servers that keep nothing on
// disk; journal, for servers with a log; and crowd, where tubes, idle connections or
// waiting workers burden a server without taking part in the load. Footprint measures the
// resident memory of a long queue, whether it is given back, and that of delayed and buried
// jobs. Restart measures how soon a server serves again after a crash.
//
// # How it is measured
//
// A round is a trial on the responder, if there is one, then on A, then on B. The
// servers take turns, so that none profits from a quiet minute of the machine, and each
// trial starts a new process, so that none inherits memory. The value of a figure is the
// median of the rounds. Ratios B/A are computed in each round; theirs is the median, too.
// Rates should be large and everything else small.
//
// What the responder, which only answers, costs for a command is the part of any server's cost that is system calls.
//
// Generator and server share the processors of one machine: compare A with B, not
// with another machine. Memory and processor time are the kernel's, from /proc.
// load.Run checks every reply, and jobs are counted.
//
// Start reading at experiment.go and trial.go, then suites.go.
package bench
