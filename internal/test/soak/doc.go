// Package soak runs the real program for any length of time, with clients and faults
// drawn at random, and compares it with an account of the answers that clients got. It has
// tests only, for Linux.
//
//	go test ./internal/test/soak                               some seconds, as a part of all tests
//	go test ./internal/test/soak -run TestSoak -for=2h -timeout=0 -v    longer
//	   -seed=7 -soak.program=bin/beanpole                      with the choices of that seed, on that binary
//	go test ./internal/test/soak -run TestCrash -seeds=200     kill -9 under load and nothing else
//
// make night runs each for a while.
//
// # A life
//
// A life begins with a start on the journal of the one before, with options
// of its own, drawn at random. First an audit asks for every job that a client ever got an answer about
// (audit_linux_test.go). Then clients come and go (client_linux_test.go, commands_linux_test.go)
// and faults happen (faults_linux_test.go): the process is stopped and continued, calls
// on files fail (strace injects that), the disk is filled (if a tmpfs can be
// mounted), descriptors run out, connections are left half way. Some lives end
// with a look whether descriptors and memory have come back. All end with a
// kill, or with SIGTERM, which must exit with 0.
//
// # The account
//
// It knows of each job what may be true: the states and priorities that it may
// be found with (account_linux_test.go). A command widens that when it is sent, and its
// reply narrows it down to one, if no other command has meanwhile been under way
// for the same job. A command that was lost with its connection may still be
// executed until the process has ended. So there are no false alarms, and few
// jobs of which little is known. Beyond that:
//
//   - a job of which the put was answered is there, with its body, tube and TTR,
//     until a delete is sent; one whose delete was answered never comes back, and
//     is deleted once;
//   - no id is given out twice, and ids grow;
//   - a job is held by one client at a time, for its TTR at least;
//   - the server has as many jobs as were found, and no others;
//   - every command is answered, in order, with a reply that it can have; errors
//     come only in lives that have seen a fault of their kind, and puts are taken
//     again when that is over;
//   - a server whose socket is held open while it restarts refuses no connection
//     (restart_linux_test.go, with internal/test/ledger: no state of a job is of
//     interest there, only whether it is);
//   - the process does not end by itself, and its log has no panic.
//
// # A cluster
//
// TestCluster runs three members, with clients that use any of them, while faults happen (cluster_faults_linux_test.go): members
// are killed, stopped, restarted, removed and replaced, the network between them is parted, their disks hang, fail and
// fill up. Afterwards the history of each job is held against that of one queue, by
// porcupine (cluster_history_linux_test.go): what was acknowledged has happened, once, and what was not answered may
// have happened at any time after it was sent. The members' journals must have the same jobs in the end.
//
//	go test ./internal/test/soak -run TestCluster -seeds=50 -timeout=0 -v
//	   -cluster.faults='cut off|hears'          only those of such a name
//	   -cluster.old=/usr/bin/beanpole           also members that change to another version and back
//
// Where the system permits it the test runs in namespaces of its own, in which each member has a network to itself
// (cluster_network_linux_test.go). Root is not needed for that, but programs: ip, nsenter and strace. Faults
// that are not possible are left out, and the test says why.
//
// # Seeds
//
// A seed draws options, clients, commands and faults. The processes and the
// network do as they like, so a seed repeats the kind of a run and not the run.
//
// Start reading at soak_linux_test.go.
package soak
