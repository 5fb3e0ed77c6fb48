// Package soak runs the real program for any length of time, with random clients and
// faults, and checks that a correct queue could have sent the replies. It contains only
// tests, for Linux.
//
//	go test ./internal/test/soak                               a few seconds, with all tests
//	go test ./internal/test/soak -run TestSoak -for=2h -timeout=0 -v    longer
//	   -seed=7 -soak.program=bin/beanpole                      with this seed and this binary
//	go test ./internal/test/soak -run TestCrash -seeds=200     only kill -9 under load
//
// make night runs each of them for some time.
//
// # A life
//
// A life starts with the journal of the previous life and with random options. First, an
// audit peeks at every known job and at some deleted jobs (group_linux_test.go). Then
// clients connect and disconnect (clients_linux_test.go), and faults happen
// (faults_linux_test.go): the process is stopped and continued, strace makes file calls
// fail, the disk is full (if a tmpfs can be mounted), descriptors are exhausted, and
// connections are abandoned. After each fault, commands must be acknowledged again. A
// life ends with a kill under load, or with SIGTERM. Before SIGTERM, descriptors and
// memory must be released; the program must exit with 0 and leave a valid journal.
// TestRestart holds the socket open during the restart, so that no connection is refused.
//
// # The history
//
// For each job, porcupine compares the requests and replies with a model of a queue
// (history_linux_test.go). An acknowledged request was executed once. A request without a
// reply was executed at some time after it was sent, or never. No id is used twice, a job
// keeps its body, the server counts as many jobs as the audit finds, and errors occur
// only after a matching fault. internal/test/sim and internal/engine test the other
// promises of a queue, such as order, times and priorities.
//
// # A cluster
//
// TestCluster runs three members with the same clients, which use any member. Faults
// happen at the same time (cluster_faults_linux_test.go): members are killed, stopped,
// restarted, removed and replaced, the network is partitioned, and disks hang, fail and
// fill up. At the end, the members' journals must contain the same jobs.
//
// TestFailover checks that clients keep connections, jobs and waits.
//
//	go test ./internal/test/soak -run TestCluster -seeds=50 -timeout=0 -v
//	   -faults='cut off|hears'                   only faults with a matching name
//	   -cluster.old=/usr/bin/beanpole           also upgrade and downgrade members
//
// If the system permits it, the test runs in its own namespaces, in which each member has
// its own network (network_linux_test.go). This requires the programs ip, nsenter and
// strace, but not root. The test skips impossible faults and logs the reason.
//
// # Seeds
//
// A seed determines options, clients, commands and faults, but not the timing of
// processes and the network. Therefore a seed repeats the kind of a run, but not the
// exact run.
//
// Start reading at soak_linux_test.go.
package soak
