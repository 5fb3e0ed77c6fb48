package advice

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

// The error in stats is one line, even if the error or the path has several. Programs
// that read stats line by line would treat a second line as another key.
func TestPlainIsOneLine(t *testing.T) {
	err := fmt.Errorf("journal: %w", errors.Join(
		fmt.Errorf("wal: remove segment: %w", fs.ErrPermission),
		&fs.PathError{Op: "open", Path: "/a\r\nb", Err: fs.ErrNotExist}))
	const want = "remove segment: permission denied; open /a; b: file does not exist"
	if got := Plain(err); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
