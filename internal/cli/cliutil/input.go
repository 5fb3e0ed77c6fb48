package cliutil

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/charmbracelet/x/term"
)

// An Input is standard input, of which a Read ends when the command is interrupted.
// NotFoundError is read before the first Read: what a command does not want is left for others.
type Input struct {
	ctx  context.Context
	from io.Reader

	begin sync.Once
	pipe  *io.PipeReader
}

// NewInput returns an input that is interrupted when ctx ends.
func NewInput(ctx context.Context, from io.Reader) *Input { return &Input{ctx: ctx, from: from} }

// Read implements io.Reader.
func (in *Input) Read(b []byte) (int, error) {
	in.begin.Do(in.start)
	return in.pipe.Read(b)
}

// start starts a goroutine that reads until the end, or for as long as the program lives:
// nothing else interrupts a read from a terminal.
func (in *Input) start() {
	pipe, w := io.Pipe()
	in.pipe = pipe
	context.AfterFunc(in.ctx, func() { w.CloseWithError(in.ctx.Err()) })
	go func() {
		_, err := io.Copy(w, in.from)
		w.CloseWithError(err)
	}()
}

// Confirm asks a person. Where there is none it fails.
func Confirm(in io.Reader, out io.Writer, question string) error {
	if !term.IsTerminal(os.Stdin.Fd()) {
		return UsageError("%s add --yes, since there is no terminal to ask on", question)
	}
	fmt.Fprintf(out, "%s [y/N] ", question)
	line, _ := bufio.NewReader(in).ReadString('\n')
	if a := strings.ToLower(strings.TrimSpace(line)); a != "y" && a != "yes" {
		return errors.New("nothing was done")
	}
	return nil
}
