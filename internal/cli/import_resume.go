package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/jobjson"
)

// An importState is how far an import has come, as its file has it.
type importState struct {
	Addr   string `json:"addr"`   // of the server
	Probe  string `json:"probe"`  // the tube of this import's own jobs
	Jobs   int    `json:"jobs"`   // that were put
	Lines  int    `json:"lines"`  // that were read for them
	Offset int64  `json:"offset"` // in bytes, of the next line
	Done   bool   `json:"done"`

	// The batch under way: jobs from the offset on, of which the server may have got
	// none, some or all.
	Batch int   `json:"batch,omitempty"` // how many; 0: none
	Skip  []int `json:"skip,omitempty"`  // the places of those that were put for certain

	// What was so at some time before it.
	After  uint64 `json:"after"`  // its jobs have larger ids
	Server string `json:"server"` // the process, by its id
	Puts   uint64 `json:"puts"`   // how many puts it had done, or fewer
}

// loadState reads the state of an import, or begins one.
func loadState(file, addr string) (st importState, err error) {
	fresh := importState{Addr: addr, Probe: newProbeTube()}
	if file == "" {
		return fresh, nil
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, nil
	}
	if err != nil {
		return st, err
	}
	if err := json.Unmarshal(data, &st); err != nil || st.Probe == "" || st.Offset < 0 || st.Batch < 0 {
		return st, fmt.Errorf("%s is not the progress of an import; remove it to start over", file)
	}
	if st.Addr != addr {
		return st, usageError("%s is of an import to %s; for another server choose another file with --progress", file, st.Addr)
	}
	return st, nil
}

// save writes the state. The file is the old one or the new one at any moment.
func (st *importState) save(file string) error {
	if file == "" {
		return nil
	}
	data, err := json.Marshal(st)
	if err != nil {
		return err
	}
	f, err := os.Create(file + ".new")
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return replaceFile(file)
}

// settle finds out what has become of the batch that was under way, if any, and
// notes from where on ids are of this run.
func (im *importer) settle(ctx context.Context) error {
	before, err := im.conn.Stats(ctx)
	if err != nil {
		return err
	}
	probe, err := putProbe(ctx, im.conn, im.state.Probe)
	if err != nil {
		return err
	}
	if probe <= im.state.After {
		return fmt.Errorf("the server has restarted without its jobs: its newest id is %d, and was %d; to import all again, remove %s",
			probe, im.state.After, im.opt.progress)
	}
	if im.state.Batch > 0 {
		err = im.recover(ctx, probe)
	}
	if err == nil {
		im.state.After, im.state.Server, im.state.Puts = probe, before.ID, before.TotalJobs+1
		err = im.state.save(im.opt.progress)
	}
	if err != nil {
		return err
	}
	// Only now: the next run would miss it among the jobs that are there.
	_, err = deleteState(context.WithoutCancel(ctx), im.conn, im.state.Probe, client.StateDelayed, func(int) {})
	return err
}

// recover looks for the jobs of the doubtful batch.
func (im *importer) recover(ctx context.Context, probe uint64) error {
	// After the probe, so that it counts all puts that the search can find.
	now, err := im.conn.Stats(ctx)
	if err != nil {
		return err
	}
	jobs, err := im.read(im.state.Batch)
	if err != nil {
		return err
	}
	if len(jobs) != im.state.Batch {
		return fmt.Errorf("%s speaks of other lines than the input has; if this is another file, remove it", im.opt.progress)
	}
	places := newPlaces(jobs, im.state.Skip)
	there := int64(0)
	sc := scan{from: im.state.After + 1, to: probe - 1, bodies: true, probes: true}
	err = sc.run(ctx, im.conn, func(live []found) (bool, error) {
		there += int64(len(live))
		for i := range live {
			place, ok := places.take(&live[i])
			if !ok {
				continue
			}
			im.state.Skip = append(im.state.Skip, place)
			if isBuried(&jobs[place]) {
				if err := buryAfterKill(ctx, im.conn, live[i].ID, jobs[place].Priority); err != nil {
					return false, err
				}
			}
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	gone := int64(probe-1-im.state.After) - there
	if now.ID == im.state.Server && now.ID != "" {
		// A put that was refused, or cut off, may have taken an id but is not counted.
		gone = min(gone, int64(now.TotalJobs-im.state.Puts)-1-there)
	}
	if missing := len(jobs) - len(im.state.Skip); missing > 0 && gone > 0 {
		if err := im.decide(jobs, missing, gone); err != nil {
			return err
		}
	}
	im.again = jobs
	return nil
}

// decide does with doubtful jobs what the user has said.
func (im *importer) decide(jobs []jobjson.Job, missing int, gone int64) error {
	switch im.opt.doubtful {
	case "put":
	case "skip":
		im.state.Skip = nil
		for i := range jobs {
			im.state.Skip = append(im.state.Skip, i)
		}
	default:
		return fmt.Errorf("of the %d jobs from line %d on %d are not on the server, but %d jobs have been put and deleted since: "+
			"these, or others. Say --doubtful put, which may put jobs twice, or --doubtful skip, which may lose some",
			len(jobs), im.state.Lines+1, missing, gone)
	}
	return nil
}

// places are where jobs are in a batch, by what is equal in a job and its copy on
// the server.
type places map[placeKey][]int

type placeKey struct {
	tube string
	pri  uint32
	ttr  int64
	body string
}

func newPlaces(jobs []jobjson.Job, skip []int) places {
	p := make(places)
	skipped := make(map[int]bool)
	for _, i := range skip {
		skipped[i] = true
	}
	for i := range jobs {
		if !skipped[i] {
			k := placeKey{jobs[i].Tube, jobs[i].Priority, int64(jobs[i].TTR), string(jobs[i].Bytes())}
			p[k] = append(p[k], i)
		}
	}
	return p
}

// take returns the place of a job that was found, once.
func (p places) take(f *found) (int, bool) {
	k := placeKey{f.Tube, f.Priority, seconds(f.TTR), string(f.body)}
	free := p[k]
	if len(free) == 0 {
		return 0, false
	}
	p[k] = free[1:]
	return free[0], true
}
