package cliutil

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"
)

// A Bar shows the progress of a command on standard error if that is a terminal.
type Bar struct {
	w     io.Writer // nil if standard error is not a terminal
	what  string    // the unit of count
	start time.Time
	last  time.Time // time of the last Show
}

// NewBar returns a bar that counts what on w, which is standard error.
func NewBar(w io.Writer, what string) *Bar {
	b := &Bar{what: what, start: time.Now()}
	if term.IsTerminal(os.Stderr.Fd()) {
		b.w = w
	}
	return b
}

// Show shows that part of total is done, and count. A total of zero is unknown.
func (b *Bar) Show(part, total uint64, count int) {
	now := time.Now()
	if b.w == nil || now.Sub(b.last) < 100*time.Millisecond {
		return
	}
	b.last = now
	took := now.Sub(b.start)
	fmt.Fprint(b.w, "\r")
	if total > 0 {
		fmt.Fprint(b.w, gauge(float64(part)/float64(total)), " ")
	}
	fmt.Fprintf(b.w, "%d %s, %.0f/s%s \x1b[K", count, b.what, float64(count)/max(took.Seconds(), 1e-3), timeLeft(part, total, took))
}

// timeLeft returns the estimated time of the rest, or "" if it is unknown.
func timeLeft(part, total uint64, took time.Duration) string {
	if part == 0 || part >= total || took < time.Second {
		return ""
	}
	left := time.Duration(float64(took) * float64(total-part) / float64(part))
	return ", " + left.Round(time.Second).String() + " left"
}

// gauge returns a bar for a part from 0 to 1.
func gauge(part float64) string {
	const width = 35
	full := int(min(part, 1) * width)
	return fmt.Sprintf("%s%s %3.0f%%", strings.Repeat("█", full), strings.Repeat("░", width-full), 100*part)
}

// End removes the bar from the screen.
func (b *Bar) End() {
	if b.w != nil {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}
