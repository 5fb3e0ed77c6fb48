package queue

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/beanpoletest"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

// A cutConn breaks after some bytes were sent, of which the last ones may be a part
// of a command. What came before is executed; its replies are lost.
type cutConn struct {
	net.Conn
	left *int
}

func (c *cutConn) Write(b []byte) (int, error) {
	if len(b) <= *c.left {
		*c.left -= len(b)
		return c.Conn.Write(b)
	}
	n, _ := c.Conn.Write(b[:*c.left])
	*c.left = 0
	// The server executes what it has before it sees the end.
	c.Conn.(interface{ CloseWrite() error }).CloseWrite()
	io.Copy(io.Discard, c.Conn)
	c.Close()
	return n, io.ErrClosedPipe
}

// A target is a server that jobs are put to, over connections that break.
type target struct {
	*testing.T
	server *beanpoletest.Server
	look   *client.Conn
}

func newTarget(t *testing.T) *target {
	srv := beanpoletest.NewMemory(t)
	return &target{t, srv, dial(t, srv.Dial)}
}

func dial(t *testing.T, dial func(context.Context, string, string) (net.Conn, error)) *client.Conn {
	t.Helper()
	c, err := client.Dial(t.Context(), "memory", &client.Options{Dial: dial, Reconnect: client.Never})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// cut returns a connection that breaks after so many bytes.
func (tg *target) cut(bytesLeft int) *client.Conn {
	tg.Helper()
	return dial(tg.T, func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := tg.server.Dial(ctx, network, addr)
		return &cutConn{nc, &bytesLeft}, err
	})
}

// jobs returns how many jobs of each kind a server has.
func jobs(t *testing.T, c *client.Conn) map[string]int {
	t.Helper()
	jobs := map[string]int{}
	err := eachJob(t, c, scan{}, func(f *found) {
		j := f.exported()
		jobs[j.Tube+" "+j.State+" "+strconv.Itoa(int(j.Priority))+" "+string(j.Bytes())]++
	})
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

// eachJob calls f with all jobs that a scan finds.
func eachJob(t *testing.T, c *client.Conn, sc scan, f func(*found)) error {
	return newSession("").scan(t.Context(), c, &sc, func(jobs []found) error {
		jobs, err := withBodies(t.Context(), c, jobs)
		for i := range jobs {
			f(&jobs[i])
		}
		return err
	})
}

// newSession returns one that reads an input, and prints for nobody.
func newSession(input string) *session {
	return &session{Session: cliutil.Session{In: strings.NewReader(input), Out: bufio.NewWriter(io.Discard), Err: io.Discard}}
}

// A few jobs, of which lines say that they are in other tubes by turns.
const exported = `{"tube":"t","body":"same"}
{"tube":"u","body":"other"}

{"tube":"t","body":"same"}
{"tube":"t","state":"buried","priority":3,"body":"buried"}
{"tube":"u","state":"delayed","time_left":100,"body":"late"}
{"tube":"t","body":"last"}
`

// imports runs an import. It returns how far that has come.
func (tg *target) imports(c *client.Conn, from int, input string) (*importer, error) {
	im := &importer{session: newSession(input), from: from}
	im.Conn = c
	return im, im.run(tg.Context())
}

// Wherever an import breaks: run again from the line that it names, each job is there once
// at least, and no job of a line before that is there twice.
func TestImportBreaks(t *testing.T) {
	all := newTarget(t)
	if _, err := all.imports(all.look, 1, exported); err != nil {
		t.Fatal(err)
	}
	want := jobs(t, all.look)
	const step = 5
	broken := true
	for cut := rand.N(step); broken; cut += step {
		tg := newTarget(t)
		im, err := tg.imports(tg.cut(cut), 1, exported)
		broken = err != nil
		before := jobs(t, tg.look)
		if broken {
			if _, err := tg.imports(tg.look, im.next, exported); err != nil {
				t.Fatalf("cut at %d, --from %d: %v", cut, im.next, err)
			}
		}
		got := jobs(t, tg.look)
		for kind, n := range want {
			if got[kind] < n || got[kind] > n+before[kind] {
				t.Errorf("cut at %d, went on at line %d: %d of %q, want %d; there were %d", cut, im.next, got[kind], kind, n, before[kind])
			}
		}
		tg.server.Close()
	}
}

// A line that cannot be read ends an import after the lines before it. Going on there puts
// each job once.
func TestImportBadLine(t *testing.T) {
	tg := newTarget(t)
	good := strings.Repeat(exported, 200)
	lines := strings.SplitAfter(good, "\n")
	lines[1000] = `{"no":1}` + "\n"
	im, err := tg.imports(tg.look, 1, strings.Join(lines, ""))
	if err == nil || !strings.HasPrefix(err.Error(), `line 1001: unknown member "no"; `) || !strings.HasSuffix(err.Error(), " jobs were put; --from 1001 goes on") {
		t.Fatal(err)
	}
	if _, err := tg.imports(tg.look, im.next, good); err != nil {
		t.Fatal(err)
	}
	all := newTarget(t)
	if _, err := all.imports(all.look, 1, good); err != nil {
		t.Fatal(err)
	}
	if got, want := jobs(t, tg.look), jobs(t, all.look); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if _, err := tg.imports(tg.look, 5000, good); err == nil {
		t.Error("an input of fewer lines is taken")
	}
}

// What the server refuses is told by its line, and how many of the lines after it were put.
func TestImportRefused(t *testing.T) {
	tg := newTarget(t)
	big := `{"body":"` + strings.Repeat("x", 70_000) + `"}` + "\n"
	_, err := tg.imports(tg.look, 1, exported+big+exported)
	if err == nil || !strings.HasPrefix(err.Error(), "line 8: ") || !strings.HasSuffix(err.Error(), "; 6 of the lines after it were put, up to line 15; 12 jobs were put; --from 8 goes on, and may put jobs of the lines up to 15 twice") {
		t.Error(err)
	}
}

// An import that is interrupted ends between two batches.
func TestImportInterrupted(t *testing.T) {
	tg := newTarget(t)
	ctx, cancel := context.WithCancel(t.Context())
	im := &importer{session: newSession(exported), from: 3}
	im.Conn = tg.look
	cancel()
	if err := im.run(ctx); !errors.Is(err, context.Canceled) || !strings.HasSuffix(err.Error(), "; 0 jobs were put; --from 3 goes on") {
		t.Error(err)
	}
}

// Reserved jobs are written as ready.
func TestExportReserved(t *testing.T) {
	tg := newTarget(t)
	if _, err := tg.look.Put(t.Context(), client.NewJob{}); err != nil {
		t.Fatal(err)
	}
	if _, err := tg.look.Reserve(t.Context()); err != nil {
		t.Fatal(err)
	}
	var out, notes bytes.Buffer
	s := &session{Session: cliutil.Session{Out: bufio.NewWriter(&out), Err: &notes}}
	if err := s.export(t.Context(), tg.look, new(scan)); err != nil {
		t.Fatal(err)
	}
	s.Out.Flush()
	if !strings.Contains(out.String(), `"state":"ready"`) || !strings.Contains(notes.String(), "1 of the jobs were reserved") {
		t.Errorf("%s%s", out.String(), notes.String())
	}
}
