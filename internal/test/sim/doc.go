// Package sim kills the whole server, again and again: engine, broker, journal
// and, in some runs, the server with its connections. The disk is in memory
// (memfs), its calls fail (faultfs), and the time is fake (testing/synctest). The
// package has tests only.
//
//	go test ./internal/test/sim                            a few new seeds
//	go test ./internal/test/sim -run TestPower -for=10m    as many as ten minutes have
//	go test ./internal/test/sim -run TestPower -seed=1234  one, such as one that failed
//
// # How it is checked
//
// A recorder stands between the broker and the journal and keeps every Change
// (history_test.go). The journal promises one thing: after a restart, the state is
// what a prefix of those Changes makes, and that prefix has at least everything
// that was acknowledged. The history replays the Changes on plain maps. It knows
// nothing of records, segments or cleaning. It says which prefix was found, or
// shows the difference. Then the run goes on from there.
//
// Where clients are simulated too, a ledger has what they were told
// (internal/test/ledger).
//
// # What happens to a server
//
//   - power cuts at any operation of the disk, also during start and shutdown
//     (power_test.go, and with clients and connections clients_test.go, where the
//     event loops run on simulated sockets: memnet.Kernel; what clients do
//     besides to put and to reserve, and with which rights: manager_test.go);
//   - kill -9 and clean shutdowns, in between;
//   - every file call fails, once or from then on, with and without having done
//     its work (fault_test.go);
//   - calls fail for a while, again and again, while clients connect, do a few
//     things and go (shortlived_test.go);
//   - all of that with policies of tubes; and with jobs that have one attempt, which
//     nobody is given twice (policy_test.go);
//   - the disk is full (full_test.go);
//   - all of that at once, and files get lost (storm_test.go).
//
// Also, the same work gives the same answers with all options of the journal
// (same_test.go). beanstalkd's files are taken over completely, wherever the
// take-over is interrupted (adopt_test.go).
//
// # Seeds
//
// Everything in a run is drawn from its seed, and one processor runs it, so a seed
// that fails once fails again.
//
// Start reading at world_test.go.
package sim
