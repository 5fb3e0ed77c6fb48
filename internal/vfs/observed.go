package vfs

// An Observer is notified of the Syncs of files, including failed ones. Both methods are
// called in the goroutine that syncs.
type Observer interface {
	SyncBegins() (at int64) // returns the time on the observer's clock
	SyncEnds(at int64)      // at is the result of SyncBegins
}

// Observed returns fs with an observer for the Syncs of its files.
func Observed(fs FS, o Observer) FS { return &observedFS{fs, o} }

type observedFS struct {
	FS
	observer Observer
}

func (fs *observedFS) Create(name string) (File, error)    { return fs.observed(fs.FS.Create(name)) }
func (fs *observedFS) Open(name string) (File, error)      { return fs.observed(fs.FS.Open(name)) }
func (fs *observedFS) OpenWrite(name string) (File, error) { return fs.observed(fs.FS.OpenWrite(name)) }

func (fs *observedFS) observed(f File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return &observedFile{f, fs.observer}, nil
}

type observedFile struct {
	File
	observer Observer
}

func (f *observedFile) Sync() error {
	at := f.observer.SyncBegins()
	defer f.observer.SyncEnds(at)
	return f.File.Sync()
}
