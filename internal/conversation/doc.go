// Package conversation is the life of a connection without its input and
// output: a state machine that is fed bytes, says which commands it wants executed
// in a turn of the broker, and gives back the bytes of the replies.
//
// A driver owns it and does the input and output: an event loop of package server, or a
// simulator. No code here blocks, reads a clock, or knows a socket.
//
//	c := conversation.New(shared, owner)
//	c.Open(batch)
//	c.Receive(batch, now, input)   // whole commands go into the batch
//	                               // in a turn: batch.Apply(engine, now)
//	batch.TurnOver()               // what was not executed is kept
//	batch.Settle(err)              // the changes are durable, or not
//	n := write(c.Output())
//	c.Wrote(now, n)
//	wait(c.Next())                 // besides what the state wants
//	c.Advance(batch, now)
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
//	                     │◀── the input has ended ┤
//	                     │                        └── quit ──▶ Lingering, Closed
//	                     └─ nothing left ─Advance─▶ Leaving
//
//	any state ── End, Stop, or Advance when it is late ──▶ Leaving ──TurnOver──▶ Lingering ──Drained──▶ Closed
//
// The constants of State say what each of them wants of the driver. A session is
// opened and ended in a turn, too; nothing waits for that turn to be settled. A quit
// ends the session in the turn that executes it: a client that sees the end of the
// connection can rely on its jobs being ready again. If the server may no longer decide
// ([broker.ErrDeposed]) the conversations of the turn are closed at once, without a word.
//
// # Time
//
// Every limit on time is here (time.go, ending.go). A driver asks Next when
// the conversation wants to be looked at, and calls Advance then. It may call it at any
// other time: then nothing is due, and nothing happens.
//
// Conversation.execute, the only place where commands are executed, refuses those that the
// client may not give (admission.go).
//
// # Invariants
//
// Check tests them.
//
//   - V1. There are replies to write in the states Writing and Settling only, and
//     always in Writing.
//   - V2. A conversation that waits in a reserve executes nothing, and has
//     replies to write only to what came before the reserve.
//   - V3. There is an answer only while a reserve waits.
//   - V4. After the end of the session no input is kept, and no commands are expected
//     where there is no input.
//   - V5. In the state Reading without unread input a conversation has no buffer,
//     unless its driver has asked for Space to read into.
//   - V6. A command or a reply that goes on is not over: some of it is left.
//   - V7. A session exists from the first turn on, until the conversation has come to
//     its end: not in the states Opening, Lingering and Closed.
//   - V8. The input after a waiting reserve is less than MaxAhead and what was
//     received at a time, which is 64 KiB or half the buffer.
//   - V9. A conversation that counts for Memory has its place among those that do, and
//     one that is closed does not count.
//
// # Memory
//
// A conversation keeps the input of one command that is not complete, growing with what
// has arrived and not with what a put announces, and nothing of a large put that will be
// refused; and replies up to maxOut bytes and one more. A body that is larger than
// largeBody is not copied into a reply: the reply refers to it, even when the job is
// deleted meanwhile. What all of them keep together has a bound (memory.go).
//
// Start reading with Conversation in conversation.go, then Batch in batch.go and
// ending.go; execute.go has a function for each command.
package conversation
