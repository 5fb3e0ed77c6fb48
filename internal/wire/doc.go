// Package wire translates between the bytes of the beanstalk protocol and commands and
// replies, in both directions. Servers use one half and clients the other. Both are in
// one package, so that each tests the other.
//
// A server passes its input to a [Parser] and appends its replies:
//
//	p := wire.Parser{MaxBody: wire.DefaultMaxBody}
//	var cmd wire.Command
//	for {
//		n, ok := p.Next(in, &cmd) // consumes n bytes; ok if cmd is complete
//		in = in[n:]
//		if !ok {
//			break // read more; p.Need returns the size, if known
//		}
//		if cmd.Fault != wire.None {
//			out = wire.AppendWord(out, cmd.Fault.Word())
//			continue
//		}
//		// execute cmd: out = wire.AppendNumber(out, wire.Inserted, id), ...
//	}
//
// A client appends commands ([AppendCommand]) and parses replies with [ParseReply],
// [ParseDict] and [ParseList].
//
// Each command is a row of the table in table.go: verb, arguments, counter. Parser,
// [AppendCommand] and [AppendStats] interpret that table. reply.go contains a similar
// table of replies. No other package contains CR LF, verbs, reply words or the keys of
// stats.
//
// # Invariants
//
// The commands in a stream do not depend on the boundaries of reads. No command or reply
// allocates memory. Parsed names and bodies are slices of the caller's buffer; nothing is
// copied.
//
// # Compatibility
//
// The reference is beanstalkd 1.13, even for malformed input. A line can match some verbs
// by its start alone; kick parses its number like strtoul; and the body of a put with an
// invalid line is parsed as commands. Two defects are fixed. In beanstalkd, a CR without
// LF hides the end of its line, and an over-long line whose CR is the last byte of a full
// buffer swallows the next line. Here, a line ends at its first CR LF.
//
// # Limits
//
// The package has no model of a queue: no defaults, no states, and no rules that need
// more than one line. A TTR of 0 stays 0, and tubes need not exist. It uses no sockets
// and keeps no buffers. The functions that append commands do not check tube names; see
// [ValidTube].
//
// Start reading at table.go, then command.go, then parser.go.
package wire
