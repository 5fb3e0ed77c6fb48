package queue

import (
	"context"
	"io"
	"sync"
)

// An input is standard input, of which a Read ends when the command is interrupted.
// Nothing is read before the first Read: what a command does not want is left for others.
type input struct {
	ctx  context.Context
	from io.Reader

	begin sync.Once
	pipe  *io.PipeReader
}

// Read implements io.Reader.
func (in *input) Read(b []byte) (int, error) {
	in.begin.Do(in.start)
	return in.pipe.Read(b)
}

// start starts a goroutine that reads until the end, or for as long as the program lives:
// nothing else interrupts a read from a terminal.
func (in *input) start() {
	pipe, w := io.Pipe()
	in.pipe = pipe
	context.AfterFunc(in.ctx, func() { w.CloseWithError(in.ctx.Err()) })
	go func() {
		_, err := io.Copy(w, in.from)
		w.CloseWithError(err)
	}()
}
