// Package sim repeatedly kills the whole server: engine, broker, journal and, in some
// runs, the server with its connections. The disk is in memory (memfs), its calls fail
// (faultfs), and the time is fake (testing/synctest). The package contains only tests.
//
//	go test ./internal/test/sim                            a few new seeds
//	go test ./internal/test/sim -run TestPower -for=10m    new seeds for 10 minutes
//	go test ./internal/test/sim -run TestPower -seed=1234  a single seed, for example to repeat a failure
//
// # Checks
//
// A recorder between the broker and the journal stores every Change (history_test.go).
// The journal makes one promise: after a restart, the state results from a prefix of
// those Changes, and the prefix contains all acknowledged Changes. The history replays
// the Changes on plain maps, without records, segments or cleaning. It reports the
// prefix, or the difference. Then the run continues from that state.
//
// If a test also simulates clients, a ledger checks their replies (internal/test/ledger).
//
// # Faults
//
//   - Power cuts at any operation of the disk, including start and shutdown
//     (power_test.go). clients_test.go adds clients and connections on simulated sockets
//     (memnet.Kernel), and manager_test.go rights and commands other than put and reserve.
//   - kill -9 and clean shutdowns.
//   - Each file call fails, once or permanently, with or without its effect
//     (fault_test.go).
//   - Calls fail for a while, repeatedly, while short-lived clients connect
//     (shortlived_test.go).
//   - All of these with policies of tubes, and with jobs that must be reserved at most once
//     (policy_test.go).
//   - A full disk (full_test.go).
//   - All of these at once, and lost files (storm_test.go).
//
// In addition, the same work gives the same replies with all options of the journal
// (same_test.go), and beanstalkd files are imported completely even if the import is
// interrupted at any point (adopt_test.go).
//
// # Seeds
//
// A seed determines the whole run, which uses a single processor. Therefore, a seed that
// fails once fails again.
//
// Start reading at world_test.go.
package sim
