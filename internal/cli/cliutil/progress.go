package cliutil

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/charmbracelet/x/term"
)

// A Progress shows the progress of a command on standard error if that is a terminal.
type Progress struct {
	w    io.Writer // nil if standard error is not a terminal
	last time.Time // time of the last Show
}

// NewProgress returns a Progress that writes to w, which is standard error.
func NewProgress(w io.Writer) *Progress {
	if !term.IsTerminal(os.Stderr.Fd()) {
		w = nil
	}
	return &Progress{w: w}
}

// Show shows the number of jobs that are done, and the total unless it is zero.
func (p *Progress) Show(done, total uint64) {
	if p.w == nil || time.Since(p.last) < 100*time.Millisecond {
		return
	}
	p.last = time.Now()
	text := fmt.Sprint(done)
	if total > 0 {
		text += fmt.Sprint(" of ", total)
	}
	fmt.Fprintf(p.w, "\r%s jobs\x1b[K", text)
}

// End removes the text from the screen.
func (p *Progress) End() {
	if p.w != nil {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
