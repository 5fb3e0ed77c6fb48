// Package conformance judges servers of the beanstalk protocol by
// conversations that were recorded from the real beanstalkd.
//
// A [Transcript] is a text file in testdata: a sentence on what is shown and
// why it matters, then what each connection sends and what it must receive.
// README.md documents the language. The package imports nothing of beanpole
// and knows a server only as something that can be started and dialled, so
// anybody can hold a server of their own against it:
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, conformance.Process{Path: "./myserver"}, conformance.Beanstalkd113)
//	}
//
// A server that runs inside the test process can be played on fake time with
// [RunInBubble]; then a transcript that waits ten seconds takes no time.
//
// Rules:
//
//   - Answers come from the real server (go test -run TestRecord -record),
//     never from ours. Where beanpole differs on purpose, the transcript
//     carries both answers and the reason.
//   - Every transcript starts a fresh server, hence job ids count from 1.
//   - The order in which a server reads from two sockets is not defined, so
//     the player never leaves it open: before it turns to another connection
//     it gives the server a moment to read what was sent on this one.
//   - At the end no connection may have received a byte that the transcript
//     does not mention.
//
// Deliberately not here: throughput, the journal, and anything that the
// protocol's text leaves to the server. Beside the transcripts, twin_test.go
// sends random conversations to the real server and to ours and compares, and
// the folder interop runs client libraries of other languages.
//
// Start reading at a file of testdata, then transcript.go and player.go.
package conformance
