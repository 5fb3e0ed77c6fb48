// Package sim is where the whole server is killed, again and again: engine,
// broker, journal and, for some runs, server with its connections, on a disk in
// memory (memfs), on calls that fail (faultfs) and on fake time
// (testing/synctest). It has tests only.
//
//	go test ./internal/sim                    a few seconds' worth
//	go test ./internal/sim -sim.seeds=5000    thousands of lives
//	go test ./internal/sim -sim.seed=1234     the one that failed, again
//
// # How it is judged
//
// A recorder stands between the broker and the journal and keeps every Change
// that passes (ledger_test.go). The journal's promise is then one sentence:
// what is found after a restart is what a prefix of those Changes makes, one
// that has at least all that was acknowledged. The ledger replays them on plain
// maps, knows nothing of records, segments or cleaning, and says which prefix
// it was, or shows the difference. From there the life goes on.
//
// Where clients are simulated too, they keep their own account: what they were
// told was put is there with its body, what they were told was deleted never
// comes back, no id is given out twice.
//
// # What happens to a server
//
//   - power cuts, at any operation of the disk, during start and shutdown too
//     (power_test.go, and with clients and connections clients_test.go);
//   - kill -9 and clean shutdowns, in between;
//   - each single file call failing, once or from then on, having done its
//     work or not (fault_test.go);
//   - a disk that is full (full_test.go), a real one too where tests may mount
//     one (tmpfs_linux_test.go).
//
// Besides, the same work gives the same answers whatever the journal's options
// (same_test.go), and beanstalkd's files are taken over whole, wherever that is
// interrupted (adopt_test.go).
//
// # Seeds
//
// All of a life is drawn from its seed, and one processor runs it, so that a
// seed that fails does so again.
//
// Start reading at world_test.go.
package sim
