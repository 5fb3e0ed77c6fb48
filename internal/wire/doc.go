// Package wire translates between the bytes of the beanstalk protocol and
// commands and replies, in both directions. The server uses one half of it, a
// client the other; they stand side by side so that each checks the other.
//
// A server gives its input to a [Parser] and appends what it has to say:
//
//	p := wire.Parser{MaxBody: wire.DefaultMaxBody}
//	var cmd wire.Command
//	for {
//		n, ok := p.Next(in, &cmd) // one command, or what can be discarded
//		in = in[n:]
//		if !ok {
//			break // read more; p.Need says how much, if that is known
//		}
//		if cmd.Fault != wire.None {
//			out = wire.AppendWord(out, cmd.Fault.Word())
//			continue
//		}
//		// execute cmd: out = wire.AppendInserted(out, id), ...
//	}
//
// A client appends commands ([AppendPut], [AppendReserve], ...) and reads
// replies with [ParseReply], [ParseDict] and [ParseList].
//
// Everything about a command is one row of the table in table.go: verb,
// arguments, counter. Parser, [AppendCommand] and [AppendStats] are
// interpreters of that table. The replies have such a table in reply.go. CR LF,
// verbs, reply words and the keys of stats are written nowhere else.
//
// # Invariants
//
// What is said about a stream of bytes does not depend on how it is cut into
// reads. Nothing is allocated per command or reply. Parsed names and bodies
// alias the caller's buffer; nothing is copied.
//
// # Compatibility
//
// The judge is beanstalkd 1.13, malformed input included: prefixes are enough
// for some verbs, kick reads its number as strtoul does, a put that is refused
// for its format does not skip its body. Two defects are not kept. In
// beanstalkd a CR that no LF follows hides the end of its line, and an over-long
// line whose CR is the last byte of a full buffer swallows the next line. Here
// a line ends at its first CR LF.
//
// # What it does not do
//
// It knows no queue: no defaults, no states, no rule about jobs beyond what
// can be seen in a line. A TTR of 0 stays 0, and whether a tube exists is not
// its business. It reads and writes no sockets and keeps no buffers. Appending
// functions for clients do not check tube names; see [ValidTube].
//
// Start reading at table.go, then command.go, then parser.go.
package wire
