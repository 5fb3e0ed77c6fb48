package catchup

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal/record"
)

// Received says what was received. The member goes on with the entry after From.
type Received struct {
	From  Mark
	Until Mark // from here on the member has the state that the log says
	Jobs  uint64
	Bytes int64
}

// ErrInvalid is wrapped by the error of Receive for bytes that are no walk.
var ErrInvalid = errors.New("not a walk of this version")

// maxRecord is the largest record in bytes: that of a job of 1 GiB.
const maxRecord = 1<<30 + 1024

// Receive reads a walk, and gives what it says to take, in slices of some hundred, in order.
// take must not keep the slice, nor the bodies. epoch is the moment at which the clock of the
// receiver's engine was 0, in ns since 1970. After an error nothing of it counts: what was
// taken has to be thrown away. A connection that ends too soon is io.ErrUnexpectedEOF.
func Receive(r io.Reader, epoch int64, take func([]engine.Change) error) (got Received, err error) {
	rd := receiver{r: bufio.NewReaderSize(r, 64<<10), epoch: epoch, take: take, got: &got, tubes: make(map[string]string)}
	if err := rd.all(); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return got, fmt.Errorf("catchup: receive: %w", err)
	}
	return got, nil
}

type receiver struct {
	r     *bufio.Reader
	epoch int64
	take  func([]engine.Change) error
	got   *Received
	tubes map[string]string

	changes []engine.Change // of a slice
	buf     bytes.Buffer    // their records; if it grows the bodies stay where they are
}

func (r *receiver) all() error {
	head := make([]byte, len(magic)+markSize)
	if _, err := io.ReadFull(r.r, head); err != nil {
		return err
	}
	if string(head[:len(magic)]) != magic {
		return ErrInvalid
	}
	r.got.From = readMark(head[len(magic):])
	r.got.Bytes = int64(len(head))
	for {
		length, err := binary.ReadUvarint(r.r)
		switch {
		case err != nil:
			return err
		case length == 0:
			return r.end()
		case length > maxRecord:
			return fmt.Errorf("%w: a record of %d bytes", ErrInvalid, length)
		}
		if len(r.changes) == sliceJobs || r.buf.Len()+int(length) > sliceBytes {
			if err := r.flush(); err != nil {
				return err
			}
		}
		if err := r.item(int64(length)); err != nil {
			return err
		}
	}
}

// item reads one record. Memory for it is allocated as its bytes come.
func (r *receiver) item(length int64) error {
	at := r.buf.Len()
	if _, err := io.CopyN(&r.buf, r.r, length); err != nil {
		return err
	}
	c, err := record.Decode(r.buf.Bytes()[at:], r.epoch, r.tubes)
	if err != nil {
		return err
	}
	switch c.Kind {
	case engine.JobPut:
		r.got.Jobs++
	case engine.TubePaused, engine.LastID:
	default:
		return fmt.Errorf("%w: it has a record of kind %d", ErrInvalid, c.Kind)
	}
	r.got.Bytes += length
	r.changes = append(r.changes, c)
	return nil
}

// flush gives the slice away.
func (r *receiver) flush() error {
	if len(r.changes) > 0 {
		if err := r.take(r.changes); err != nil {
			return err
		}
	}
	clear(r.changes)
	if r.changes = r.changes[:0]; r.buf.Cap() > keptBuffer {
		r.buf = bytes.Buffer{}
	}
	r.buf.Reset()
	return nil
}

func (r *receiver) end() error {
	end := make([]byte, markSize)
	if _, err := io.ReadFull(r.r, end); err != nil {
		return err
	}
	jobs, err := binary.ReadUvarint(r.r)
	if err != nil {
		return err
	}
	if jobs != r.got.Jobs {
		return fmt.Errorf("%w: it has %d jobs and speaks of %d", ErrInvalid, r.got.Jobs, jobs)
	}
	r.got.Until = readMark(end)
	if r.got.Until.Index < r.got.From.Index {
		return fmt.Errorf("%w: it ends at %d, before its beginning at %d", ErrInvalid, r.got.Until.Index, r.got.From.Index)
	}
	return r.flush()
}
