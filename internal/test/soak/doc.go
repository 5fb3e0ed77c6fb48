// Package soak runs the real program for any length of time, with clients and faults
// drawn at random, and holds the answers that clients got against what a queue may answer. It has
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
// A life begins with a start on the journal of the one before, with options of its own, drawn at random. First an
// audit asks for every job that is known, and for some that were deleted (group_linux_test.go). Then clients come and go
// (clients_linux_test.go) and faults happen (faults_linux_test.go): the process is stopped and continued, calls on
// files fail (strace injects that), the disk is filled (if a tmpfs can be mounted), descriptors run out, connections
// are left half way. After each, commands are acknowledged again. A life ends with a kill under load; or with a look
// whether descriptors and memory have come back, and SIGTERM, which must exit with 0 and leave a journal without faults.
// TestRestart has the socket held open meanwhile: no connection is refused.
//
// # The history
//
// What clients have sent and were told of each job is held against that of one queue with that job, by porcupine
// (history_linux_test.go): what was acknowledged has happened, once, and what was not answered may have happened at
// any time after it was sent. No id is given out twice, a job keeps its body, the server has as many jobs as were
// found, and errors come only after a fault of their kind. Other promises of a queue, such as its order, times and
// priorities, are those of internal/test/sim and internal/engine.
//
// # A cluster
//
// TestCluster runs three members, with the same clients, which use any of them, while faults happen (cluster_faults_linux_test.go): members
// are killed, stopped, restarted, removed and replaced, the network between them is parted, their disks hang, fail and
// fill up. The members' journals must have the same jobs in the end.
//
//	go test ./internal/test/soak -run TestCluster -seeds=50 -timeout=0 -v
//	   -faults='cut off|hears'                   only those of such a name
//	   -cluster.old=/usr/bin/beanpole           also members that change to another version and back
//
// Where the system permits it the test runs in namespaces of its own, in which each member has a network to itself
// (network_linux_test.go). Root is not needed for that, but programs: ip, nsenter and strace. Faults
// that are not possible are left out, and the test says why.
//
// # Seeds
//
// A seed draws options, clients, commands and faults. The processes and the
// network do as they like, so a seed repeats the kind of a run and not the run.
//
// Start reading at soak_linux_test.go.
package soak
