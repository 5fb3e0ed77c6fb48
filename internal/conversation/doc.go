// Package conversation is the life of a connection without its input and
// output: a state machine that is fed bytes, says which commands it wants executed
// in a turn of the broker, and gives back the bytes of the replies.
//
// A driver owns it and does the input and output: the event loops of package
// server, its goroutines for connections that are no sockets, the simulator. No
// code here blocks, reads a clock, or knows a socket. So a driver may as well feed
// what it has decrypted, or what another machine has sent.
//
//	c := conversation.New(shared, owner)
//	c.Open(batch)
//	c.Receive(batch, now, input)   // whole commands go into the batch
//	                               // in a turn: batch.Apply(engine, now)
//	batch.TurnOver()               // what was not executed is kept
//	batch.Settle(err)              // the changes are durable, or not
//	n := write(c.Output())
//	c.Wrote(now, n)
//
// # States
//
// A Batch is what conversations want done in one turn. A conversation is in one
// batch at a time with commands, and nothing more is executed for it until that
// batch is settled and all replies are written: so replies keep their order, and
// none leaves before what it promises is durable.
//
//	Opening ──Receive──┐
//	   │ settled       │
//	   ▼               ▼  whole commands
//	Reading ─Receive─▶ Executing ──TurnOver──▶ Settling
//	  ▲  ▲                ▲                       │ Settle
//	  │  └─ no whole ──┐  │ Advance               ▼
//	  │     command    Ready ◀── more input ── (replies?) ──yes──▶ Writing
//	  │                  ▲                        │ none            │ Wrote,
//	  └──────────────────┼── nothing unread ──────┤◀────────────────┘ all of them
//	                     │                        ├── a reserve waits ──▶ Waiting
//	                     │                        │                        │ Answered
//	                     │                        │◀─ Writing ◀────────────┘
//	                     │                        └── quit, or the end of input ──▶ Done
//
//	instead of Reading or Ready ── no token (limiter.go) ──▶ Throttled ──Advance──▶ Executing, Reading
//
//	any state ──End──▶ Leaving ──TurnOver──▶ Closed
//
// The constants of State say what each of them wants of the driver. A session is
// opened and ended in a turn, too; nothing waits for that turn to be settled.
//
// A command that the client may not give is refused in Conversation.execute, the only
// place where commands are executed (admission.go). A client that gives more commands a
// second than it may is not refused: its driver reads no more until it may (limiter.go).
//
// # Invariants
//
// Check tests them.
//
//   - V1. There are replies to write in the states Writing and Settling only, and
//     always in Writing.
//   - V2. A conversation that waits in a reserve executes nothing, and has
//     replies to write only to what came before the reserve.
//   - V3. Only a conversation that waits can have been answered.
//   - V4. After a quit, or a line of HTTP, nothing more is executed, and no
//     input is kept.
//   - V5. In the state Reading without unread input a conversation has no buffer,
//     unless its driver has asked for Space to read into.
//   - V6. A command or a reply that goes on is not over: some of it is left.
//   - V7. A session exists from the first turn to the last: not in the states
//     Opening and Closed.
//   - V8. The input behind a waiting reserve is less than MaxAhead and what was
//     received at a time, which is 64 KiB or half the buffer.
//   - V9. A conversation that is throttled has a token for the next command, and
//     knows when it can use that.
//
// # Memory
//
// A conversation keeps the input of one command that is not complete, growing with
// what has arrived and not with what a put announces; and replies up to maxOut
// bytes and one more. A body that is larger than largeBody is not copied into a
// reply: the reply refers to it, even when the job is deleted meanwhile.
//
// Start reading with Conversation in conversation.go, then Batch in batch.go;
// execute.go has a function for each command.
package conversation
