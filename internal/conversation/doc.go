// Package conversation implements the protocol of a connection as a state machine. It
// receives bytes, passes commands to a turn of the broker, and returns the bytes of the
// replies.
//
// A driver owns each conversation and does its input and output: an event loop of package
// server, or a simulator. This package never blocks, reads a clock, or uses a socket.
//
//	c := conversation.New(shared, owner)
//	c.Open(now)                    // in a turn: c.OpenSession(engine)
//	c.Start()
//	c.Receive(batch, now, input)   // adds complete commands to the batch
//	                               // in a turn: batch.Apply(engine, now)
//	batch.TurnOver()               // keeps input that was not executed
//	batch.Settle(err)              // err is nil if the changes are durable
//	n := write(c.Output())
//	c.Wrote(now, n)
//	wait(c.Next())                 // and for the events of the state
//	c.Advance(batch, now)
//
// # States
//
// A Batch contains the commands for one turn. All commands of a conversation are in one
// batch at a time. Its next commands are executed when that batch is settled and all
// replies are written. So replies keep their order, and none is sent before the change
// that it confirms is durable.
//
//	Opening
//	   │ Start
//	   ▼                  whole commands
//	Reading ─Receive─▶ Executing ──TurnOver──▶ Settling
//	  ▲  ▲                ▲                       │ Settle
//	  │  └─ no whole ──┐  │ Advance               ▼
//	  │     command    Ready ◀── more input ── (replies?) ──yes──▶ Writing
//	  │                  ▲                        │ none            │ Wrote,
//	  └──────────────────┼── nothing unread ──────┤◀────────────────┘ all of them
//	                     │                        ├── a reserve waits ──▶ Waiting
//	                     │                        │                        │ Answered
//	                     │                        │◀─ Writing ◀────────────┘
//	                     │◀── the input has ended ┤
//	                     │                        └── quit ──▶ Lingering, Closed
//	                     └─ nothing left ─Advance─▶ Leaving
//
//	any state ── End, Stop, or Advance when it is late ──▶ Leaving ──TurnOver──▶ Lingering ──Drained──▶ Closed
//
// The constants of State define the driver's next step. Turns also open and end sessions;
// the conversation does not wait until these turns are settled. A quit ends the session
// in the turn that executes it. So when a client sees the end of the connection, its jobs
// are ready again. If the broker is deposed ([broker.ErrDeposed]), the conversations of
// the turn are closed at once, without a reply.
//
// # Time
//
// This package implements all timeouts (time.go, closing.go). A driver calls Advance at
// the time that Next returns. Earlier calls have no effect.
//
// Only Conversation.execute executes commands. It refuses those to which the client has
// no right (admission.go).
//
// # Invariants
//
// Check tests them.
//
//   - V1. There are replies to write only in the states Writing and Settling, and
//     always in Writing.
//   - V2. A conversation that waits in a reserve executes nothing, and has unwritten replies
//     only to commands before the reserve.
//   - V3. There is an answer only while a reserve waits.
//   - V4. After the end of the session, no input is kept. No commands are expected
//     where there is no input.
//   - V5. In the state Reading, a conversation without unread input has no buffer.
//   - V6. A command or a reply in progress is incomplete.
//   - V7. A session exists from the first turn until the end of the conversation: not in
//     the states Opening, Lingering and Closed.
//   - V8. The input after a waiting reserve is shorter than MaxAhead plus one read, which is
//     64 KiB or half the buffer.
//   - V9. A conversation that counts for Memory is in its heap at its index, and
//     a closed conversation does not count.
//
// # Memory
//
// A conversation buffers the input of at most one incomplete command. The buffer grows
// with the input, not with the size that a put announces. A conversation also buffers up
// to maxOut bytes of replies and one more reply. A reply refers to a body of at least
// largeBody bytes instead of copying it, even if the job is deleted. Memory limits the
// total of all conversations (memory.go).
//
// Start reading with Conversation in conversation.go, then Batch in batch.go and
// closing.go; execute.go has a function for each command.
package conversation
