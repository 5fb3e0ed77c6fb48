package entry

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

const epoch = 1_000_000

func samples() []engine.Change {
	return []engine.Change{
		{Kind: engine.JobPut, State: engine.Delayed, ID: 7, Pri: 5, Delay: 2, TTR: 60, Created: 11, Due: 99, Tube: "mail", Body: []byte("hello"), BodyLen: 5},
		{Kind: engine.JobState, State: engine.Buried, ID: 7, TTR: 1, Due: 3, Counts: engine.Counts{Buries: 1}},
		{Kind: engine.TubePaused, Tube: "mail", Delay: 9, Due: 44},
		{Kind: engine.PolicySet, Tube: "mail-*", Body: []byte("paused=yes\n"), BodyLen: 11},
		{Kind: engine.JobDeleted, ID: 7},
	}
}

func TestRoundTrip(t *testing.T) {
	var b Builder
	for _, c := range samples() {
		b.Add(&c, epoch)
	}
	entries := b.Entries(123)
	if len(entries) != 1 {
		t.Fatalf("%d entries", len(entries))
	}
	if len(b.Entries(1)) != 0 {
		t.Error("the taken changes still exist")
	}
	var d Decoder
	stamp, changes, err := d.Decode(entries[0], epoch)
	if err != nil || stamp != 123 || !reflect.DeepEqual(changes, samples()) {
		t.Errorf("stamp %d, %v\n%+v\nwant\n%+v", stamp, err, changes, samples())
	}
}

// The bytes never change: every version reads entries of earlier versions.
func TestBytes(t *testing.T) {
	var b Builder
	b.Add(&engine.Change{Kind: engine.JobDeleted, ID: 300}, epoch)
	got := hex.EncodeToString(b.Entries(0x0102030405060708)[0])
	if want := "03" + "0807060504030201" + "03" + "03ac02"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A large turn becomes several entries. None is much larger than a message can be, unless
// a single job is that large.
func TestLargeTurns(t *testing.T) {
	var b Builder
	body := bytes.Repeat([]byte("x"), 300_000)
	for id := range uint64(10) {
		b.Add(&engine.Change{Kind: engine.JobPut, State: engine.Ready, ID: id + 1, TTR: 1, Tube: "t", Body: body}, epoch)
	}
	huge := bytes.Repeat([]byte("y"), 3*wanted)
	b.Add(&engine.Change{Kind: engine.JobPut, State: engine.Ready, ID: 11, TTR: 1, Tube: "t", Body: huge}, epoch)
	b.Add(&engine.Change{Kind: engine.JobDeleted, ID: 1}, epoch)
	var d Decoder
	var last uint64
	for i, e := range b.Entries(1) {
		_, changes, err := d.Decode(e, epoch)
		if err != nil {
			t.Fatal(err)
		}
		if len(e) > wanted && len(changes) > 1 {
			t.Errorf("entry %d has %d bytes and %d changes", i, len(e), len(changes))
		}
		for _, c := range changes {
			if c.Kind == engine.JobPut && c.ID != last+1 {
				t.Errorf("job %d after job %d", c.ID, last)
			}
			last = c.ID
		}
	}
	if last != 1 {
		t.Errorf("the last change is that of job %d", last)
	}
}

// A member stops at an entry that it does not support, and skips nothing.
func TestUnknown(t *testing.T) {
	var b Builder
	b.Add(&engine.Change{Kind: engine.JobDeleted, ID: 300}, epoch)
	good := b.Entries(5)[0]
	var d Decoder
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"a level":        {append([]byte{Level + 1}, good[1:]...), ErrUnknown},
		"cut short":      {good[:len(good)-1], ErrInvalid},
		"another record": {append(bytes.Clone(good), 2, 5, 9), ErrInvalid},
		"without a head": {good[:4], ErrInvalid},
	} {
		if _, _, err := d.Decode(c.data, epoch); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	var b Builder
	for _, c := range samples() {
		b.Add(&c, epoch)
	}
	f.Add(b.Entries(9)[0])
	f.Fuzz(func(t *testing.T, data []byte) {
		var d Decoder
		stamp, changes, err := d.Decode(data, epoch)
		if err != nil {
			return
		}
		var b Builder
		for i := range changes {
			b.Add(&changes[i], epoch)
		}
		for _, e := range b.Entries(stamp) { // decoded changes can be encoded and decoded again
			if _, _, err := d.Decode(e, epoch); err != nil {
				t.Error(err)
			}
		}
	})
}
