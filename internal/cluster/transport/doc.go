// Package transport connects the members of a cluster: TLS 1.3 in which both sides show
// certificates of the cluster's own authority, on one port.
//
//	t := transport.New(transport.Options{Listener: l, Credentials: c, …})
//	member, err := cluster.Open(cluster.Options{Transport: t, …})  // calls SetMembers
//	t.Start(member)
//	t.Send(messages)                      // of Raft
//	conn, err := t.Client(id)             // a stream for a client that is passed on
//	reply, err := t.Request(ctx, id, …)
//	t.Close()
//
// # Connections
//
// What a connection is for is agreed on in the handshake (ALPN), so a listener knows it
// before the first byte:
//
//	messages   votes, heartbeats, acknowledgements; from the side that dials
//	entries    messages of Raft with entries; from the side that dials
//	clients    streams for clients (package mux); opened by the side that dials
//	snapshot   of the queue, for a member that lacks entries which are not in the log any more
//	admin      HTTP: requests of the JSON API, which are passed on
//	request    a question and its answer
//	join       the same, from a server that has a token and no certificate yet
//
// A member dials each other member for messages and entries, and keeps the two connections
// together: when one fails the other is closed, and after a pause that doubles up to a
// second both are made again. Heartbeats and votes never wait for entries, which have a
// connection of their own. So a large job does not cost a leader its epoch.
//
// While these are there the member keeps a connection for clients, so that a client that
// comes to a member which does not lead waits for no connection, even when the leader has
// just changed. If that connection fails it is made again, and the other two stay.
//
// Both sides of messages and entries exchange handshakes before the first message: where
// their logs end, how often they were started, their version. Either side can refuse the
// other. A message must be from the member whose certificate was shown, to this member,
// and of a kind that members send.
//
// On a connection for messages the side that dials sends an empty frame every half second,
// and gets it back. A connection that is silent for 5 s is closed by both.
//
// # Frames
//
//	frame := length u32 (big-endian) bytes
//
// A length above the limit ends the connection before anything is allocated, and memory
// grows with what has arrived, not with what was announced.
//
// # Losses
//
// Send never blocks. Messages to a member that is not connected, or does not read, are
// dropped, and Raft is told that the member is unreachable.
//
// # Goroutines
//
// One accepts; one for each connection that was accepted. For each other member one
// dials, and while it is connected two write, two read, and one waits for the end of the
// session for clients. A session has two. Close ends all.
//
// # Not here
//
// The contents of requests and streams, and the decision who may join: the Options have
// functions for them.
//
// Start reading with Transport in transport.go, then link.go and accept.go.
package transport
