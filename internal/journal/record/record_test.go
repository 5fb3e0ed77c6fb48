package record

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in testdata")

// epoch is the zero of the engine's clock in the tests: 2033-05-18 03:33:20 UTC.
const epoch = 2_000_000_000_000_000_000

var (
	timedOut  = engine.Failure{End: engine.Timeout, At: 2e12, Took: 120_000, Attempt: 2, Address: netip.MustParseAddrPort("127.0.0.1:54321")}
	exhausted = engine.Failure{
		End: engine.Release, Policy: "max-attempts", At: 2e12, Took: 5, Attempt: 3, Buried: 2e12 + 1000,
		Identity: "mailer", Address: netip.MustParseAddrPort("[2001:db8::1]:11300"), Note: "Timeout: 535 ✗",
	}
)

// kinds contains changes of each kind, including special cases.
var kinds = []struct {
	what string
	c    engine.Change
}{
	{"put: ready, without counters", engine.Change{
		Kind: engine.JobPut, State: engine.Ready, ID: 1, Pri: 1024, TTR: 60, Tube: "default", Body: []byte("hello"), BodyLen: 5,
	}},
	{"put: delayed, with counters, created before the server started", engine.Change{
		Kind: engine.JobPut, State: engine.Delayed, ID: 300, Pri: math.MaxUint32, Delay: 128, TTR: 1, Created: -1, Due: 128e9,
		Counts: engine.Counts{Reserves: 1, Timeouts: 2, Releases: 3, Buries: 4, Kicks: 500}, Tube: "a", Body: []byte{},
	}},
	{"put: buried, second in the order of burying", engine.Change{
		Kind: engine.JobPut, State: engine.Buried, ID: math.MaxUint64, TTR: math.MaxUint32, Due: 2, Tube: strings.Repeat("t", 200), Body: []byte("\r\n"), BodyLen: 2,
	}},
	{"put: buried, moved by a policy", engine.Change{
		Kind: engine.JobPut, State: engine.Buried, ID: 7, TTR: 60, Due: 3, Counts: engine.Counts{Reserves: 5, Buries: 1}, Tube: "mail.dead", Origin: "mail", Body: []byte("x"), BodyLen: 1,
	}},
	{"put: delayed, with a failure", engine.Change{
		Kind: engine.JobPut, State: engine.Delayed, ID: 8, TTR: 60, Due: 3e9, Counts: engine.Counts{Reserves: 2, Timeouts: 1}, Failure: timedOut.Append(nil), Tube: "mail", Body: []byte("x"), BodyLen: 1,
	}},
	{"state: buried, with a failure", engine.Change{Kind: engine.JobState, State: engine.Buried, ID: 8, TTR: 60, Due: 4, Counts: engine.Counts{Reserves: 3}, Failure: exhausted.Append(nil)}},
	{"state: ready", engine.Change{Kind: engine.JobState, State: engine.Ready, ID: 7, Pri: 0, TTR: 120, Created: 5e9, Counts: engine.Counts{Releases: 1}}},
	{"state: delayed", engine.Change{Kind: engine.JobState, State: engine.Delayed, ID: 7, Pri: 1, Delay: 10, TTR: 120, Created: 5e9, Due: 15e9}},
	{"state: buried", engine.Change{Kind: engine.JobState, State: engine.Buried, ID: 7, Pri: 1, TTR: 120, Created: 5e9, Due: 3, Counts: engine.Counts{Buries: 1}}},
	{"deleted", engine.Change{Kind: engine.JobDeleted, ID: 128}},
	{"paused for a minute", engine.Change{Kind: engine.TubePaused, Tube: "mail", Delay: 60, Due: 61e9}},
	{"no longer paused, or removed", engine.Change{Kind: engine.TubePaused, Tube: "mail", Due: -epoch}},
	{"policy", engine.Change{Kind: engine.PolicySet, Tube: "mail-*", Body: []byte("max-attempts=5\nretry-delay=5s\n"), BodyLen: 30}},
	{"policy: removed", engine.Change{Kind: engine.PolicySet, Tube: "mail-*", Body: []byte{}}},
	{"put: by a schedule", engine.Change{
		Kind: engine.JobPut, State: engine.Ready, ID: 9, TTR: 60, Tube: "reports", From: "nightly", Was: `{"at":1790904600,"job":9,"timing":"30 3 * * * UTC"}`, Body: []byte("x"), BodyLen: 1,
	}},
	{"schedule", engine.Change{Kind: engine.ScheduleSet, Tube: "nightly", Body: []byte("cron=\"30 3 * * *\"\ntube=\"reports\"\n"), BodyLen: 33}},
	{"mark of a schedule", engine.Change{Kind: engine.ScheduleMark, Tube: "nightly", Body: []byte(`{"at":1790904600,"timing":"30 3 * * * UTC"}`), BodyLen: 43}},
	{"last id", engine.Change{Kind: engine.LastID, ID: 1 << 32}},
	{"applied up to entry 1000 of term 7", Applied{1000, 7, epoch}.Change()},
	{"applied: left the cluster", Applied{}.Change()},
}

func encode(c *engine.Change, epoch int64) []byte {
	return append(Append(nil, c, epoch), c.Body...)
}

func decode(t interface{ Fatalf(string, ...any) }, rec []byte, epoch int64) engine.Change {
	c, err := Decode(rec, epoch, make(map[string]string))
	if err != nil {
		t.Fatalf("% x: %v", rec, err)
	}
	return c
}

// The bytes of records never change: all later versions must read journals of this
// version.
func TestGolden(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, "# Records of each kind; the engine's clock was 0 at %d. record.go draws them.\n", int64(epoch))
	for _, k := range kinds {
		fmt.Fprintf(&b, "\n# %s\n%s", k.what, hexLines(encode(&k.c, epoch)))
	}
	const name = "testdata/records.txt"
	if *update {
		if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s (-) and the current encoding (+):\n%s", name, diff)
	}
	for i, block := range strings.Split(string(want), "\n\n")[1:] {
		if got := decode(t, fromHexLines(t, block), epoch); cmp.Diff(got, kinds[i].c) != "" {
			t.Errorf("%s: read (-), want (+):\n%s", kinds[i].what, cmp.Diff(got, kinds[i].c))
		}
	}
}

func hexLines(b []byte) string {
	var s strings.Builder
	for line := range chunks(b, 16) {
		fmt.Fprintf(&s, "% x\n", line)
	}
	return s.String()
}

func chunks(b []byte, n int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(b) > n && yield(b[:n]) {
			b = b[n:]
		}
		yield(b)
	}
}

// fromHexLines is the inverse of hexLines. It skips comments.
func fromHexLines(t *testing.T, text string) (b []byte) {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		part, err := hex.DecodeString(strings.Join(strings.Fields(line), ""))
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, part...)
	}
	return b
}

// Decode is the inverse of Append, and no record is longer than MaxLen.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawChange(t)
		rec := encode(&c, epoch)
		if got := decode(t, rec, epoch); cmp.Diff(c, got) != "" {
			t.Fatalf("written (-), read (+):\n%s", cmp.Diff(c, got))
		}
		kind := c.Kind
		if c.Origin != "" || c.Failure != nil && kind == engine.JobPut {
			kind = engine.JobMoved
		}
		if most := MaxLen(kind, len(c.Tube), len(c.Body)+c.MarkLen()); kind < 0x80 && len(rec) > most {
			t.Fatalf("%+v takes %d bytes, want at most %d", c, len(rec), most)
		}
		for n := range rec {
			if (c.Kind == engine.JobPut || c.Kind.IsNamed()) && n >= len(rec)-len(c.Body) {
				break // a shorter body is valid
			}
			if _, err := Decode(rec[:n], epoch, make(map[string]string)); !errors.Is(err, ErrInvalid) {
				t.Fatalf("% x is the beginning of % x and is read: %v", rec[:n], rec, err)
			}
		}
	})
}

func drawChange(t *rapid.T) engine.Change {
	u32 := func(name string) uint32 { return rapid.Uint32().Draw(t, name) }
	moment := func(name string) int64 { return rapid.Int64().Draw(t, name) }
	c := engine.Change{Kind: rapid.SampledFrom([]engine.ChangeKind{
		engine.JobPut, engine.JobPut, engine.JobState, engine.JobDeleted, engine.TubePaused, engine.PolicySet, engine.ScheduleSet, engine.ScheduleMark, engine.LastID, AppliedMark,
	}).Draw(t, "kind")}
	tube := func() string { return string(rapid.SliceOfN(rapid.Byte(), 1, maxTube).Draw(t, "tube")) }
	switch c.Kind {
	case engine.JobDeleted, engine.LastID:
		c.ID = rapid.Uint64().Draw(t, "id")
	case engine.PolicySet, engine.ScheduleSet, engine.ScheduleMark:
		c.Tube, c.Body = tube(), rapid.SliceOfN(rapid.Byte(), 0, 30).Draw(t, "settings")
		c.BodyLen = len(c.Body)
	case engine.TubePaused:
		c.Tube, c.Delay, c.Due = tube(), u32("delay"), moment("due")
	case AppliedMark:
		c = Applied{rapid.Uint64().Draw(t, "index"), rapid.Uint64().Draw(t, "term"), moment("stamp")}.Change()
	case engine.JobPut, engine.JobState:
		c.ID, c.Pri, c.Delay, c.TTR = rapid.Uint64().Draw(t, "id"), u32("pri"), u32("delay"), max(1, u32("ttr"))
		c.State = rapid.SampledFrom([]engine.State{engine.Ready, engine.Delayed, engine.Buried}).Draw(t, "state")
		c.Created = moment("created")
		if c.State != engine.Ready {
			c.Due = moment("due")
		}
		if rapid.Bool().Draw(t, "counters") {
			c.Reserves, c.Timeouts, c.Releases = u32("reserves"), u32("timeouts"), u32("releases")
			c.Buries, c.Kicks = u32("buries"), u32("kicks")
		}
		if rapid.Bool().Draw(t, "failed") {
			text := func(most int) string { return string(rapid.SliceOfN(rapid.Byte(), 0, most).Draw(t, "text")) }
			f := exhausted
			f.At, f.Took, f.Attempt = rapid.Int64Min(0).Draw(t, "at"), rapid.Int64Min(0).Draw(t, "took"), u32("attempt")
			f.Identity, f.Note, f.Buried = text(100), text(engine.MaxNote), f.At+rapid.Int64Range(0, math.MaxInt64-f.At).Draw(t, "buried")
			c.Failure = f.Append(nil)
			if got, ok := c.Failure.Decode(); !ok || got != f {
				t.Fatalf("%+v is read as %+v", f, got)
			}
		}
	}
	if c.Kind == engine.JobPut {
		c.Tube = tube()
		if rapid.Bool().Draw(t, "moved") {
			c.Origin = tube()
		}
		if rapid.Bool().Draw(t, "by a schedule") {
			c.From, c.Was = tube(), rapid.StringN(0, 100, 300).Draw(t, "mark")
		}
		c.Body = rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "body")
		c.BodyLen = len(c.Body)
	}
	return c
}

// For any bytes, Decode returns an error that wraps ErrInvalid, or a change that survives
// Append and Decode.
func FuzzDecodeRecord(f *testing.F) {
	for _, k := range kinds {
		f.Add(encode(&k.c, epoch))
	}
	f.Add([]byte{})
	f.Add([]byte{kindPut, 3, 0x80, 0x80})
	f.Add([]byte{kindPaused, 255, 'x'})
	f.Add(bytes.Repeat([]byte{0xff}, 40))
	f.Fuzz(func(t *testing.T, rec []byte) {
		c, err := Decode(rec, epoch, make(map[string]string))
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("%v is not ErrInvalid", err)
			}
			return
		}
		again := encode(&c, epoch)
		if got := decode(t, again, epoch); cmp.Diff(c, got) != "" {
			t.Fatalf("% x is read as (-), and after it was written as (+):\n%s", rec, cmp.Diff(c, got))
		}
		if len(again) > len(rec) {
			t.Fatalf("% x is written as % x, which is longer", rec, again)
		}
	})
}
