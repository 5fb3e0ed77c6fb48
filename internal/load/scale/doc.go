// Package scale measures what the comparison of two servers under one closed
// loop does not show: how servers behave when something is large. It is what
// runs behind "beanpole bench scale".
//
//	memory     the resident memory of a long queue, and whether it is given back
//	backlog    the latency of put and reserve with millions of jobs behind, and the garbage collector's pauses
//	due        the latency of clients while a million jobs of another tube come due in one second, and their order
//	fairness   the latency of clients beside a few connections that keep hundreds of commands in flight
//	observers  the latency of list-tubes and stats with many tubes, and of clients beside whoever asks
//	cores      the throughput, cost and latency with one processor and with two
//
// Run does the experiments of Options.Only, or all:
//
//	reports, err := scale.Run(ctx, scale.Options{A: beanstalkd, B: beanpole})
//	err = scale.WriteMarkdown(os.Stdout, reports)
//
// # How it is measured
//
// Each experiment is a trial for each server in turn, A B A B ..., every time
// on a process started for it. A trial gives each figure of the experiment one
// value. A report has the medians and extremes of these, the ratios B/A of the
// trials that followed each other, and the target, where there is one.
//
// Clients whose latency counts are a load.Run: one thread, one epoll loop, a
// closed loop of put, reserve and delete with one command in flight on each
// connection. They share the machine's processors with the server and with the
// disturbance: what is compared is with and without, A and B, on the same
// machine. Memory and processor time are the kernel's, from /proc, so on other
// systems than Linux they are missing.
//
// A closed loop hides how often something slow happens: a server that stands
// still for a second makes eight commands slow, among hundreds of thousands. In
// due, where that is to be expected, the percentiles are corrected for it
// (load.Options.Pace). Elsewhere a standstill shows in the longest latency, which
// is one event and scatters.
//
// Nothing is taken on trust: jobs are counted, each job of due must come once,
// not too early, and not after one that it goes before; a list of tubes must
// name them all.
//
// To add an experiment, write a file with its figures and its trial, and a line
// in experiments.
package scale
