// Package conformance tests servers of the beanstalk protocol with transcripts that were
// recorded from the real beanstalkd.
//
// A [Transcript] is a text file in testdata. It starts with its purpose. Then it lists
// the bytes that each connection sends and must receive. README.md documents the
// language. The package imports no package of beanpole. It can test any server that it
// can start:
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, conformance.Process{Path: "./myserver"}, conformance.Beanstalkd113)
//	}
//
// With [RunInBubble], a server inside the test process uses fake time, so that a
// transcript that waits ten seconds takes no time.
//
// Rules:
//
//   - Answers come from the real server (go test -run TestReference), never
//     from ours. Where beanpole differs on purpose, the transcript has both
//     answers and the reason.
//   - Every transcript starts a new server, so job ids count from 1.
//   - The protocol does not define in which order a server reads from two
//     sockets. So before the player sends on another connection, it gives the
//     server a moment to read the bytes sent on this one.
//   - At the end, a connection must not have received bytes that are not in the
//     transcript.
//
// The package does not test throughput, the journal, or details that the protocol leaves
// undefined. In addition, twin_test.go sends the same random commands to the real server
// and to beanpole and compares the answers, and the directory interop runs client
// libraries of other languages.
//
// Start reading at a file of testdata, then transcript.go and player.go.
package conformance
