package conversation

import (
	"testing"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// The server counts unsuccessful replies by their first word.
func TestUnsuccessful(t *testing.T) {
	d := newDriver(t)
	c := d.connect()
	for range 2 {
		c.send("nonsense\nput 0 0 9 x\ndelete 9\nreserve-with-timeout 0\nignore default\nput 0 0 9 1\nabc\nkick-job 9\n")
	}
	d.failing = errDisk
	c.send("put 0 0 9 1\na\nput 0 0 9 1\na\nuse x\n")
	d.failing = nil
	d.eng.Drain()
	c.send("put 0 0 9 1\na\n")
	for w, want := range map[wire.Word]uint64{
		wire.UnknownCommand: 4, // the rest of the long body is parsed as a command
		wire.BadFormat:      2,
		wire.ExpectedCRLF:   2,
		wire.NotFound:       4,
		wire.TimedOut:       2,
		wire.NotIgnored:     2,
		wire.InternalError:  2,
		wire.Draining:       1,
		wire.JobTooBig:      0,
		wire.Inserted:       0,
		wire.Using:          0,
	} {
		if got := d.shared.Unsuccessful(w); got != want {
			t.Errorf("%v is counted %d times, want %d", w, got, want)
		}
	}
}

// Each command advances the time by a nanosecond, so the duration of a batch is its
// number of commands.
func TestCommandsTakeANanosecond(t *testing.T) {
	d := newDriver(t)
	one, other, gone := d.connect(), d.connect(), d.connect()
	one.Receive(d.batch, d.now, []byte("use a\r\nuse b\r\nuse c\r\n"))
	other.Receive(d.batch, d.now, []byte("use a\r\nuse b\r\n"))
	gone.End(d.batch, errDisk)
	later := d.batch.Apply(d.eng, 1000)
	if took := later - 1000 + 1; took != 6 {
		t.Errorf("five commands and the end of a session took %d ns, want 6", took)
	}
	d.batch.TurnOver()
	d.batch.Settle(nil)
	d.batch.Reset()
}
