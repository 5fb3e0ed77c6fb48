package top

import (
	"context"
	"errors"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"
)

// Run shows the server until the user quits or ctx ends. in and out must be a
// terminal.
func Run(ctx context.Context, server Server, addr string, every time.Duration, in io.Reader, out io.Writer) error {
	return run(ctx, newModel(server, addr, every), in, out)
}

func run(ctx context.Context, m model, in io.Reader, out io.Writer) error {
	program := tea.NewProgram(m,
		tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out))
	_, err := program.Run()
	if errors.Is(err, tea.ErrProgramKilled) || errors.Is(err, tea.ErrInterrupted) {
		return ctx.Err()
	}
	return err
}
