// Package mux carries many streams of bytes over one connection. A member of a cluster
// uses it to forward its clients to another member.
//
//	own := mux.New(conn, nil)                    // on the side that opens streams
//	other := mux.New(conn, func(s *mux.Stream) { … })  // on the side that accepts them
//	s, err := own.Open()
//	n, err := s.TryWrite(b)                      // for an event loop: never waits
//	s.Notify(func() { … })                       // when to try again
//	n, err = s.Write(b)                          // for a goroutine: waits
//
// Data that streams write during the previous write is sent together: one TLS record and
// one system call for many clients. An event loop can drive a stream like a socket,
// without a goroutine.
//
// # Frames
//
//	frame := stream u32  kind u8  length u24  bytes      big-endian
//
//	1 open
//	2 data     the bytes
//	3 end      the sender sends no more data
//	4 gone     the sender sends no more data and reads no more; a length of 1 means that it
//	           can no longer serve the stream, and no bytes follow
//	5 credit   length is the number of further bytes allowed; no bytes follow
//	6 ping     stream 0: the sender is alive
//	7 mark     u64 the position up to which the receiver's data was used, and a state
//	8 note     the part of the state that changes rarely; before a mark
//
// Stream numbers ascend from 1. Frames for a stream that has ended are ignored.
//
// A stream can have up to [Window] bytes in flight that the other side has not read.
// Therefore a client that does not read delays no other client, and the windows limit the
// memory. Each side sends a ping after a second without a frame. A side that exceeds a
// window, or is silent for 5 s, is disconnected.
//
// # Goroutines
//
// Each session has a goroutine that reads and another that writes and pings. Close ends
// them. One lock guards all streams of a session; no goroutine waits for the network
// while it holds the lock. The functions of Notify are called without the lock.
package mux
