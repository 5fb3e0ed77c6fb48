package vfs

// Timed returns fs with files that tell how long each of their Syncs took, failed ones
// too, in ns on the clock now. The function synced is called in whatever goroutine syncs.
func Timed(fs FS, now func() int64, synced func(took int64)) FS {
	return &timedFS{fs, now, synced}
}

type timedFS struct {
	FS
	now    func() int64
	synced func(took int64)
}

func (t *timedFS) Create(name string) (File, error)    { return t.timed(t.FS.Create(name)) }
func (t *timedFS) Open(name string) (File, error)      { return t.timed(t.FS.Open(name)) }
func (t *timedFS) OpenWrite(name string) (File, error) { return t.timed(t.FS.OpenWrite(name)) }

func (t *timedFS) timed(f File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return &timedFile{f, t}, nil
}

type timedFile struct {
	File
	fs *timedFS
}

func (f *timedFile) Sync() error {
	began := f.fs.now()
	err := f.File.Sync()
	f.fs.synced(f.fs.now() - began)
	return err
}
