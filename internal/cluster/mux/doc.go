// Package mux carries many streams of bytes over one connection: those of the clients
// that one member of a cluster passes on to another.
//
//	own := mux.New(conn, nil)                    // at the side that opens streams
//	other := mux.New(conn, func(s *mux.Stream) { … })  // at the one that accepts them
//	s, err := own.Open()
//	n, err := s.TryWrite(b)                      // from an event loop: never waits
//	s.Notify(func() { … })                       // when to try again
//	n, err = s.Write(b)                          // from a goroutine: it waits
//
// Everything that streams write while the last write is under way goes out together: one
// record of TLS and one system call, for many clients. An event loop can drive a stream
// as it drives a socket, without a goroutine.
//
// # Frames
//
//	frame := stream u32  kind u8  length u24  bytes      big-endian
//
//	1 open
//	2 data     the bytes
//	3 end      nothing more will be sent
//	4 gone     nothing more will be sent, and nothing is read any more
//	5 credit   length is how many more bytes may be sent; no bytes follow
//	6 ping     of stream 0: this side is there
//
// The numbers of streams ascend from 1. One that is over is forgotten, and frames for it
// are ignored.
//
// A side may have [Window] bytes under way in a stream that the other has not read. So a
// client that does not read holds up no other, and memory grows with what may be under
// way. A side that sends more, or is silent for 5 s, is disconnected: each side sends a
// ping when it has sent nothing for a second.
//
// # Goroutines
//
// One reads and one writes for each session; the second also pings. Close ends them. One
// lock guards all streams of a session; no goroutine waits for the network while it holds
// the lock.
// Functions given to Notify are called without it.
package mux
