// Rivals puts one load on beanstalkd, beanpole, Redis lists and NATS JetStream
// and prints the figures as Markdown, followed by what the figures do not say
// (differs.md). It measures the nearest job that all four can do, which is not all
// that each of them can do.
//
//	go run . -rounds 3 -duration 2s
//
// A job is put and acknowledged, taken, and finished with an acknowledgement:
// three requests, three replies. The table counts jobs, not commands.
//
//	            put                    take                     finish
//	beanstalk   put                    reserve                  delete
//	Redis       LPUSH queue            LMOVE queue processing   LREM processing
//	JetStream   PUB, answered PubAck   pull request of one      +ACK, itself acknowledged
//
// # How it is measured
//
// The loop is closed: a connection keeps so many jobs under way, and each of
// them sends its next request when the reply to the one before has come. The
// latency of a job runs from the write of its put to the read of the reply that
// says it is finished. Servers take turns, A B C D A B C D, each time as a new
// process with an empty directory; medians over the rounds are printed, and
// ratios of runs of the same round.
//
// All servers have the same client: session.go and drive.go, a goroutine for
// each connection, blocking reads and writes of a net.Conn. A dialect only turns
// the three steps into bytes and back, without allocating. There are no client
// libraries, because four of them would be four more things to measure. The
// client shares the machine with the server; the processor time that it takes
// stands in the table.
//
// Nothing is taken on trust: each reply must be the one that the step calls
// for, each job must be one of ours, and in the end what was taken must add up
// to what was put.
//
// # Which servers
//
// Those that are installed; one that is not, or that fails, is left out with a
// line that says so. Of nats-server, releases before 2.10 (Debian's is 2.9)
// cannot sync before they answer. A newer one is given with -nats:
//
//	GOBIN=DIR go install github.com/nats-io/nats-server/v2@latest
//	go run . -nats DIR/nats-server
//
// # Why it is a module of its own
//
// Decision: what it takes to measure other people's servers shall never be a
// dependency of ours, so that this folder has its own go.mod, and nothing here
// is built or tested by `go test ./...` of the root: run it here. It imports
// the generator's package, to start processes and read what they use. When
// the root's requirements change, `go mod tidy` is due here.
//
// # What it does not do
//
// No workers that wait on an empty queue, no crowds, no backlog, no restart, no
// cluster: `beanpole bench` has the first four for servers of the beanstalk
// protocol. It runs on Linux; elsewhere processor time and memory are missing.
//
// Start reading at session.go, then contender.go.
package main
