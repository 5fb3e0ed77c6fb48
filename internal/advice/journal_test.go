package advice

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

// What is shown as a value of stats is one line, whatever the error and the path are: a
// second one would be a key of its own to whoever reads it by lines.
func TestPlainIsOneLine(t *testing.T) {
	err := fmt.Errorf("journal: %w", errors.Join(
		fmt.Errorf("wal: remove segment: %w", fs.ErrPermission),
		&fs.PathError{Op: "open", Path: "/a\r\nb", Err: fs.ErrNotExist}))
	const want = "remove segment: permission denied; open /a; b: file does not exist"
	if got := Plain(err); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
