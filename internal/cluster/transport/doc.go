// Package transport connects the members of a cluster on one port. It uses TLS 1.3, and
// both sides present certificates from the cluster's own authority.
//
//	t := transport.New(transport.Options{Listener: l, Credentials: c, …})
//	member, err := cluster.Open(cluster.Options{Transport: t, …})  // calls SetMembers
//	t.Start(member)
//	t.Send(messages)                      // messages of Raft
//	conn, err := t.Client(id)             // a stream for a forwarded client
//	reply, err := t.Request(ctx, id, …)
//	t.Close()
//
// # Connections
//
// Each connection has one purpose. The TLS handshake negotiates the purpose (ALPN), so
// that a listener has it before the first byte:
//
//	messages   votes, heartbeats, acknowledgments; sent by the side that dials
//	entries    messages of Raft with entries; sent by the side that dials
//	clients    streams for clients (package mux); opened by the side that dials
//	snapshot   a snapshot of the queue, for a member that lacks entries that are no longer in the log
//	admin      HTTP: forwarded requests of the JSON API
//	request    a request and its reply
//	join       a request and its reply, for a server that has a token but no certificate yet
//
// A member dials each other member for messages and entries. If one of these two
// connections fails, the member closes the other and dials both again, after a pause that
// doubles up to a second. Heartbeats and votes never wait for entries, which have their
// own connection. Therefore a large job does not end a leader's epoch.
//
// While both are connected, the member also keeps a connection for clients. Therefore a
// client of a follower never waits for a connection, even after a change of leader. If
// that connection fails, the member dials it again; the other two stay.
//
// On connections for messages and entries, both sides exchange handshakes before the
// first message. A handshake contains the end of the log, the number of starts and the
// version. Either side can refuse the other. A message must be addressed to this member,
// come from the member whose certificate was presented, and be of a kind that members
// send.
//
// On a connection for messages, the dialing side sends an empty frame every half second
// and the other side returns it. Both sides close a connection that is silent for 5 s.
//
// # Frames
//
//	frame := length u32 (big-endian) bytes
//
// A length above the limit ends the connection before any allocation. Memory grows with
// the bytes received, not with the announced length.
//
// # Losses
//
// Send never blocks. The transport drops messages to a member that is not connected or
// does not read, and reports to Raft that the member is unreachable.
//
// # Goroutines
//
// One goroutine accepts connections, and one serves each accepted connection. For each
// other member, one goroutine dials; while the member is connected, two write, two read,
// and one waits for the end of the session for clients. A session has two more. Close
// ends all of them.
//
// Start reading with Transport in transport.go, then link.go and accept.go.
package transport
