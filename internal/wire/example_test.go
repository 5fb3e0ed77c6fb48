package wire_test

import (
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A server parses all complete commands in its buffer.
func ExampleParser() {
	p := wire.Parser{MaxBody: wire.DefaultMaxBody}
	in := []byte("use mail\r\nput 0 0 60 5\r\nhello\r\nhuh?\r\nput 0 0 60 5\r\nhe")
	var cmd wire.Command
	for {
		n, ok := p.Next(in, &cmd)
		in = in[n:]
		if !ok {
			break
		}
		switch {
		case cmd.Fault != wire.None:
			fmt.Println(cmd.Fault.Word())
		case cmd.Op == wire.Put:
			fmt.Printf("%v %d seconds %q\n", cmd.Op, cmd.TTR, cmd.Body)
		default:
			fmt.Printf("%v %s\n", cmd.Op, cmd.Tube)
		}
	}
	fmt.Printf("%q needs %d bytes\n", in, p.Need())
	// Output:
	// use mail
	// put 60 seconds "hello"
	// UNKNOWN_COMMAND
	// "put 0 0 60 5\r\nhe" needs 21 bytes
}

func ExampleAppendCommand() {
	out := wire.AppendCommand(nil, &wire.Command{Op: wire.Use, Tube: []byte("mail")})
	out = wire.AppendCommand(out, &wire.Command{Op: wire.Put, Pri: 1024, TTR: 60, Body: []byte("hello")})
	fmt.Printf("%q\n", out)
	// Output: "use mail\r\nput 1024 0 60 5\r\nhello\r\n"
}

func ExampleParseReply() {
	in := []byte("INSERTED 7\r\nRESERVED 7 5\r\nhello\r\nTIMED_")
	var r wire.Reply
	for {
		n, err := wire.ParseReply(in, &r)
		if err != nil || n == 0 {
			fmt.Printf("%q left, %v\n", in, err)
			break
		}
		in = in[n:]
		fmt.Printf("%v %d %q\n", r.Kind, r.ID, r.Body)
	}
	// Output:
	// INSERTED 7 ""
	// RESERVED 7 "hello"
	// "TIMED_" left, <nil>
}

// A long list is written in parts. Its size must be known in advance.
func ExampleAppendListStart() {
	out := wire.AppendListStart(nil, 2, len("default")+len("mail"))
	fmt.Printf("%q\n", out)
	out = wire.AppendListItem(out[:0], "default")
	fmt.Printf("%q\n", out)
	out = wire.AppendDataEnd(wire.AppendListItem(out[:0], "mail"))
	fmt.Printf("%q\n", out)
	// Output:
	// "OK 21\r\n---\n"
	// "- default\n"
	// "- mail\n\r\n"
}

func ExampleParseDict() {
	stats, err := wire.ParseDict([]byte("---\npid: 7\nversion: \"1.13\"\n"))
	fmt.Println(stats["pid"], stats["version"], err)
	// Output: 7 1.13 <nil>
}
