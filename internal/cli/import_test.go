package cli

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/beanpoletest"
)

// A doubt is an import that was killed: some jobs of its batch have been put.
type doubt struct {
	*testing.T
	conn  *client.Conn
	addr  string
	file  string
	state importState
	input string
}

const doubtful = `{"tube":"t","body":"same"}
{"tube":"u","body":"other"}
{"tube":"t","body":"same"}
{"tube":"t","state":"buried","priority":3,"body":"buried"}
{"tube":"t","ttr":5,"body":"same"}
{"tube":"t","body":"last"}
`

func newDoubt(t *testing.T) *doubt {
	srv := beanpoletest.NewServer(t)
	c, err := client.Dial(t.Context(), srv.Addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	st, err := c.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d := &doubt{T: t, conn: c, addr: srv.Addr, file: filepath.Join(t.TempDir(), "progress")}
	d.input = doubtful
	d.state = importState{Addr: srv.Addr, Probe: newProbeTube(), Batch: strings.Count(doubtful, "\n"), Server: st.ID}
	return d
}

// put puts jobs as the killed import did, a strange one between them.
func (d *doubt) put(n int) (ids []uint64) {
	d.Helper()
	im := &importer{lines: newLineReader(strings.NewReader(doubtful))}
	jobs, err := im.read(d.state.Batch)
	if err != nil {
		d.Fatal(err)
	}
	for i := range jobs[:n] {
		id, err := d.conn.Put(d.Context(), putAgain(&jobs[i]))
		if err != nil {
			d.Fatal(err)
		}
		ids = append(ids, id)
		if i == 1 {
			if _, err := d.conn.Put(d.Context(), client.NewJob{Tube: "strange", Body: []byte("same")}); err != nil {
				d.Fatal(err)
			}
		}
	}
	return ids
}

// run imports, and returns what it has printed.
func (d *doubt) run(what string) error {
	d.Helper()
	if err := d.state.save(d.file); err != nil {
		d.Fatal(err)
	}
	return d.resume(what)
}

// resume is run with what the run before has noted.
func (d *doubt) resume(what string) error {
	s := &session{in: strings.NewReader(d.input), out: bufio.NewWriter(new(bytes.Buffer)), err: io.Discard}
	s.server.addr = d.addr
	im := &importer{session: s, conn: d.conn, in: s.in, opt: importOptions{progress: d.file, doubtful: what}}
	return im.run(d.Context())
}

// want compares the jobs in the tubes of the file.
func (d *doubt) want(bodies ...string) {
	d.Helper()
	got := map[string]int{}
	sc := scan{bodies: true, probes: true}
	err := sc.run(d.Context(), d.conn, func(jobs []found) (bool, error) {
		for _, j := range jobs {
			if strings.HasPrefix(j.Tube, probePrefix) {
				d.Errorf("job %d is left over", j.ID)
			}
			if j.Tube != "strange" {
				got[string(j.State)+" "+string(j.body)]++
			}
		}
		return true, nil
	})
	if err != nil {
		d.Fatal(err)
	}
	for _, b := range bodies {
		got[b]--
	}
	for b, n := range got {
		if n != 0 {
			d.Errorf("%+d of %q", n, b)
		}
	}
}

var all = []string{"ready same", "ready other", "ready same", "buried buried", "ready same", "ready last"}

// An import that was killed between taking a job and burying it has left it ready.
func TestImportTakenToBeBuried(t *testing.T) {
	d := newDoubt(t)
	id := d.put(3)[2]
	j, err := d.conn.ReserveJob(t.Context(), id)
	if err == nil {
		err = j.Release(t.Context(), 3, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := d.run(""); err != nil {
		t.Fatal(err)
	}
	d.want(all...)
}

// However many jobs of the batch were put, and nobody has taken any: each is there
// once.
func TestImportDoubt(t *testing.T) {
	for n := range len(all) + 1 {
		d := newDoubt(t)
		d.put(n)
		if err := d.run(""); err != nil {
			t.Errorf("%d put: %v", n, err)
		}
		d.want(all...)
	}
}

// A job of the batch was taken: only the user can say whether it was.
func TestImportTaken(t *testing.T) {
	for what, want := range map[string][]string{
		"skip": {"ready same", "buried buried", "ready same"},
		"put":  all,
	} {
		d := newDoubt(t)
		ids := d.put(4)
		if err := d.conn.Delete(t.Context(), ids[0]); err != nil {
			t.Fatal(err)
		}
		if err := d.run(""); err == nil || !strings.Contains(err.Error(), "--doubtful") {
			t.Errorf("it does not ask: %v", err)
		}
		if err := d.run(what); err != nil {
			t.Error(err)
		}
		d.want(want...)
	}
}

// A batch that was put is not in doubt when the next one fails.
func TestImportNextFails(t *testing.T) {
	d := newDoubt(t)
	d.state.Batch, d.state.Server = 0, ""
	d.input += "nonsense\n"
	if err := d.run(""); err == nil || !strings.Contains(err.Error(), "line 7") {
		t.Error(err)
	}
	err := d.conn.Use(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	done, err := d.conn.PeekReady(t.Context())
	if err == nil {
		err = d.conn.Delete(t.Context(), done.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	d.input = doubtful
	if err := d.resume(""); err != nil {
		t.Error(err)
	}
	d.want(all[1:]...)
}

// An id that was used up by no put is no job that was taken: the server counts puts.
func TestImportLostID(t *testing.T) {
	d := newDoubt(t)
	id, err := d.conn.Put(t.Context(), client.NewJob{Tube: "strange"})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.conn.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	d.put(2)
	if err := d.run(""); err == nil {
		t.Error("a job that has gone is not noticed")
	}
	d.state.Puts = 1 // as if it had never been put
	if err := d.run(""); err != nil {
		t.Error(err)
	}
	d.want(all...)
}

// A server that has lost its jobs is no place to go on.
func TestImportServerAnew(t *testing.T) {
	d := newDoubt(t)
	d.state.After, d.state.Batch = 1000, 0
	if err := d.run(""); err == nil || !strings.Contains(err.Error(), "has restarted") {
		t.Error(err)
	}
}

func TestImportStateErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "progress")
	for _, text := range []string{"", "{}", "1", `{"probe":"x","offset":-1}`} {
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := loadState(file, "a"); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// Reserved jobs are written as ready.
func TestExportReserved(t *testing.T) {
	d := newDoubt(t)
	d.put(1)
	if err := d.conn.WatchOnly(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.conn.Reserve(t.Context()); err != nil {
		t.Fatal(err)
	}
	var out, notes bytes.Buffer
	s := &session{out: bufio.NewWriter(&out), err: &notes}
	if err := s.export(t.Context(), d.conn, scan{}); err != nil {
		t.Fatal(err)
	}
	s.out.Flush()
	if !strings.Contains(out.String(), `"state":"ready"`) || !strings.Contains(notes.String(), "1 of the jobs were reserved") {
		t.Errorf("%s%s", out.String(), notes.String())
	}
}
