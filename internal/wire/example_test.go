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
