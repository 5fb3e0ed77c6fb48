// Package conformance tests servers of the beanstalk protocol with transcripts
// that were recorded from the real beanstalkd.
//
// A [Transcript] is a text file in testdata. It begins with a sentence that says
// what is shown and why it matters. Then it says what each connection sends and
// what it must receive. README.md documents the language. The package imports
// nothing of beanpole and needs only a server that it can start and dial, so it
// can test any server:
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, conformance.Process{Path: "./myserver"}, conformance.Beanstalkd113)
//	}
//
// With [RunInBubble], a server that runs inside the test process runs on fake
// time; then a transcript that waits ten seconds takes no time.
//
// Rules:
//
//   - Answers come from the real server (go test -run TestRecord -record), never
//     from ours. Where beanpole differs on purpose, the transcript has both
//     answers and the reason.
//   - Every transcript starts a new server, so job ids count from 1.
//   - The protocol does not define in which order a server reads from two
//     sockets. So before the player sends on another connection, it gives the
//     server a moment to read what was sent on this one.
//   - At the end, no connection may have received a byte that is not in the
//     transcript.
//
// The package does not test throughput, the journal, or what the protocol leaves
// to the server. Beside the transcripts, twin_test.go sends the same random
// commands to the real server and to ours and compares the answers, and the folder
// interop runs client libraries of other languages.
//
// Start reading at a file of testdata, then transcript.go and player.go.
package conformance
