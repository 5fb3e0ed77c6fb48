// Package bench compares two servers: it starts them in turn, runs the same experiments
// on both, and writes tables of the results. The program in compare is its command line, and
// makes the tables of bench/results/README.md.
//
//	reports, err := bench.Run(ctx, o, bench.Suites["memory"](&o))
//	err = bench.WriteMarkdown(os.Stdout, reports)
//
// Data flows one way. Options name the servers and the sizes. The trial of an Experiment
// measures figures on one server, and gives each its name, unit and value in one place. Run
// runs it on each server in each round. A Report has the figures of all rounds, and what
// came of their targets. The tables are written from reports.
//
// # The experiments
//
// Suites are tables of loads (package load): memory, for servers that keep nothing on
// disk; journal, for servers with a log; and crowd, where tubes, idle connections or
// waiting workers burden a server without taking part in the load. The suite scale is for what a
// closed loop does not show, how servers behave when something is large:
//
//	memory     the resident memory of a long queue, whether it is given back, and that of delayed and buried jobs
//	backlog    the latency of clients with millions of jobs in the queue, the garbage collector's pauses, and how soon memory is given back
//	due        the latency of clients while a million jobs of another tube come due in one second
//	fairness   the latency of clients beside a few connections that keep hundreds of commands in flight
//	observers  the latency of list-tubes and stats with many tubes, and of clients beside them
//	expensive  the latency of clients beside others that watch very many tubes, kick or hold very many jobs, or end a pause
//
// In fairness, observers and expensive, clients are measured alone, and then beside each of
// some disturbances. Restart measures how soon a server serves again after a crash. Stalls
// compares two versions of beanpole: how long clients wait while others do what takes long, which
// are its experiments: list, export, move, clear, kick, due, disconnect, connect storm, scrape and
// reload.
//
// # How it is measured
//
// A round is a trial on the responder, if there is one, then on A, then on B. The
// servers take turns, so that none profits from a quiet minute of the machine, and each
// trial starts a new process, so that none inherits memory. The value of a figure is the
// median of the rounds. Ratios B/A are computed in each round; theirs is the median, too.
// Rates should be large and everything else small.
//
// The responder only answers (load.Responder). The generator cannot measure more with any
// server on this machine, and what the responder costs for a command is the part of any
// server's cost that is system calls.
//
// Generator and server share the processors of one machine: compare A with B, not
// with another machine. In stalls the clients are a process with real-time priority (SteadyClients): their
// latency is what they wait for the server, and not for a processor that the disturbance uses. Memory and
// processor time are the kernel's, from /proc.
//
// The results are verified: load.Run checks every reply, jobs are counted, and lists of
// tubes must be complete.
//
// Start reading at experiment.go and trial.go, then suites.go and beside.go.
package bench
