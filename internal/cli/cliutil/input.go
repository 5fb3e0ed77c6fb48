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
	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/exit"
)

// An Input is standard input whose reads end at an interrupt. It reads nothing before the
// first Read, so that a command that needs no input leaves it to other programs.
type Input struct {
	ctx  context.Context
	from io.Reader

	begin sync.Once
	pipe  *io.PipeReader
}

// NewInput returns an input whose reads fail when ctx ends.
func NewInput(ctx context.Context, from io.Reader) *Input { return &Input{ctx: ctx, from: from} }

// Read implements io.Reader.
func (in *Input) Read(b []byte) (int, error) {
	in.begin.Do(in.start)
	return in.pipe.Read(b)
}

// start starts a goroutine that reads until the end of the input or the program, because
// a read from a terminal cannot be interrupted.
func (in *Input) start() {
	pipe, w := io.Pipe()
	in.pipe = pipe
	context.AfterFunc(in.ctx, func() { w.CloseWithError(in.ctx.Err()) })
	go func() {
		_, err := io.Copy(w, in.from)
		w.CloseWithError(err)
	}()
}

// DefineYes adds the option --yes to a command that asks for confirmation.
func (s *Session) DefineYes(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&s.yes, "yes", "y", false, "do not ask for confirmation")
}

// Confirm asks the user a question, unless --yes was given. It returns an error if the
// answer is no, or if standard input is not a terminal.
func (s *Session) Confirm(question string) error {
	if s.yes {
		return nil
	}
	if !term.IsTerminal(os.Stdin.Fd()) {
		return exit.UsageError("%s Standard input is not a terminal: confirm with --yes", question)
	}
	fmt.Fprintf(s.Err, "%s [y/N] ", question)
	line, _ := bufio.NewReader(s.In).ReadString('\n')
	if a := strings.ToLower(strings.TrimSpace(line)); a != "y" && a != "yes" {
		return errors.New("cancelled")
	}
	return nil
}
