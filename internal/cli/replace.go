package cli

import (
	"errors"
	"os"
	"path/filepath"
)

// replaceFile gives the file NAME.new, which is synced, its name. That is durable, too: what
// rests on the new file may be done.
func replaceFile(name string) error {
	if err := os.Rename(name+".new", name); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
