package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/decode"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/jobjson"
	"github.com/beanpole-mq/beanpole/internal/server"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// ndjson is the content type of a stream of jobs, one per line.
const ndjson = "application/x-ndjson"

func (r *request) exportTube(in *admin.ExportTube) (*admin.Stream, error) {
	return r.export([]string{r.tube}, &in.Search)
}

func (r *request) exportAll(in *admin.ExportAll) (*admin.Stream, error) {
	return r.export(nil, &in.Search)
}

// export streams the jobs of tubes, with their bodies. If tubes is nil, it streams the
// jobs of all tubes whose bodies the client may see. An error after the start of the
// stream closes the connection.
func (r *request) export(tubes []string, in *admin.Search) (*admin.Stream, error) {
	s, err := jobSearch(in)
	if err != nil {
		return nil, err
	}
	end, err := r.beginScan(anExport)
	if err != nil {
		return nil, err
	}
	if tubes, _, err = r.searched(tubes, s); err != nil {
		end()
		return nil, err
	}
	return &admin.Stream{Disposition: `attachment; filename="jobs.ndjson"`, Close: end, Write: func(w io.Writer) error {
		out := bufio.NewWriterSize(w, 64<<10)
		whole := jobScan{places: placesOf(tubes, s.states), bodies: server.MaxJobSizeLimit}
		if err := r.scan(&whole, r.exporter(out, s)); err != nil {
			return err
		}
		return out.Flush()
	}}, nil
}

// exporter returns a function that writes the matching jobs of a slice.
func (r *request) exporter(out *bufio.Writer, s *search) func([]scannedJob) bool {
	lines, rd := json.NewEncoder(out), r.reading()
	return func(slice []scannedJob) bool {
		wanted := slice[:0]
		rd.each(slice, s, func(j *scannedJob, matches bool) bool {
			if matches {
				wanted = append(wanted, *j)
			}
			return true
		})
		for i := range wanted { // outside the gate, so that a slow client does not delay searches
			one := r.jobOf(&wanted[i].JobStats)
			jobjson.SetBody(&one, wanted[i].body)
			if lines.Encode(&one) != nil {
				return false
			}
		}
		return true
	}
}

const (
	// The maximum number of jobs, and of bytes of bodies, that an import puts in a turn.
	jobsPerImport  = 250
	bytesPerImport = 1 << 20
)

// importAll puts the jobs of a stream into the tube in the path, or into the tubes that
// the jobs specify. Jobs before an error are kept.
func (r *request) importAll(from *admin.ImportAll) (done admin.Imported, err error) {
	in := &importer{request: r, lines: bufio.NewScanner(from.Lines)}
	in.lines.Buffer(make([]byte, 0, 64<<10), int(r.api.maxJSON())+1)
	in.lines.Split(in.split)
	for more := true; more && err == nil; {
		if more, err = in.read(); len(in.batch) > 0 {
			if refused := in.put(); refused != nil {
				err = refused
			}
		}
	}
	r.note("count", in.done)
	if p, ok := errors.AsType[*problem](err); ok && in.done > 0 {
		more := *p // a copy, because some problems are shared
		more.Done = &in.done
		return done, &more
	}
	return admin.Imported{Imported: in.done}, err
}

func (r *request) importTube(from *admin.ImportTube) (admin.Imported, error) {
	return r.importAll(&from.ImportAll)
}

// An importer puts the jobs of a stream.
type importer struct {
	*request
	lines *bufio.Scanner
	line  int // number of the last line read
	batch []importedJob
	done  uint64
}

// An importedJob is a job to put, with the end of its last attempt.
type importedJob struct {
	jobjson.Job
	failure engine.FailureRecord
}

// read reads the next batch of jobs, and reports whether there can be more.
func (in *importer) read() (more bool, err error) {
	in.batch = in.batch[:0]
	for size := 0; len(in.batch) < jobsPerImport && size < bytesPerImport; {
		text, err := in.nextLine()
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		var j importedJob
		j.Job, err = jobjson.Read(text, jobjson.Job{Tube: in.tube, Priority: jobjson.DefaultPriority, TTR: jobjson.DefaultTTR})
		if err == nil {
			err = in.check(&j.Job)
		}
		if err == nil {
			j.failure, err = failureAgain(&j.Job)
		}
		if err != nil {
			if p, ok := errors.AsType[*problem](err); ok {
				return false, problemf(p.Status, "line %d: %s", in.line, p.Detail)
			}
			return false, badRequest("line %d: %v", in.line, err)
		}
		in.batch = append(in.batch, j)
		size += int(j.Size)
	}
	return true, nil
}

// split is bufio.ScanLines. An import is a large request from its first large line on.
func (in *importer) split(data []byte, atEOF bool) (advance int, line []byte, err error) {
	if advance, line, err = bufio.ScanLines(data, atEOF); line == nil && len(data) >= maxTaskBytes {
		err = in.enlarge()
	}
	return advance, line, err
}

// nextLine returns the next line that is not empty. It is valid until the next call.
func (in *importer) nextLine() ([]byte, error) {
	for in.lines.Scan() && in.lines.Err() == nil { // otherwise the line is incomplete
		in.line++
		if line := bytes.TrimSpace(in.lines.Bytes()); len(line) > 0 {
			return line, nil
		}
	}
	in.line++
	switch err := in.lines.Err(); err {
	case nil:
		return nil, io.EOF
	case bufio.ErrTooLong:
		return nil, problemf(http.StatusRequestEntityTooLarge, "line %d has more than %d bytes", in.line, in.api.maxJSON())
	}
	if p, ok := errors.AsType[*problem](problemOf(in.lines.Err())); ok {
		return nil, problemf(p.Status, "line %d: %s", in.line, p.Detail).After(p.RetryAfter)
	}
	return nil, badRequest("the stream is incomplete: it ends at line %d", in.line)
}

// check checks the tube and the size of a job.
func (in *importer) check(j *jobjson.Job) error {
	if in.tube != "" {
		j.Tube = in.tube
	}
	if j.Tube == "" {
		return badRequest("tube: want the name of a tube")
	}
	if err := checkTube(j.Tube); err != nil {
		return err
	}
	if err := in.fits(j.Size); err != nil {
		return err
	}
	return in.permittedOn(putNamed, "the tube "+j.Tube, j.Tube)
}

// put puts the batch, in as many turns as needed.
func (in *importer) put() error {
	return each(in.request, in.batch, func(e *engine.Engine, now int64, j importedJob) error {
		err := putAgain(e, now, &j)
		if err == nil {
			in.done++
		}
		return err
	})
}

// failureAgain returns the failure record for a job to put, or nil if the job has no
// failure. It omits a reason that the body contains.
func failureAgain(j *jobjson.Job) (engine.FailureRecord, error) {
	in := j.Failure
	if in == nil {
		return nil, nil
	}
	f := engine.Failure{Policy: in.Policy, At: in.At * 1000, Took: int64(in.Took * 1000), Attempt: uint32(in.Attempt), Buried: in.Buried * 1000, Identity: in.Identity}
	for end := engine.Timeout; end <= engine.Taken; end <<= 1 {
		if end.String() == in.End {
			f.End = end
		}
	}
	addr, err := netip.ParseAddrPort(in.Address)
	if (f.End == 0) != (in.End == "") || (err != nil) != (in.Address == "") || min(f.At, f.Took, f.Buried) < 0 {
		return nil, badRequest("failure: want the end, the times and the address of an export")
	}
	f.Address = netip.AddrPortFrom(addr.Addr().WithZone(""), addr.Port())
	if in.Reason != decode.Reason(j.Bytes()) {
		f.Note = string(wire.CutNote(in.Reason))
	}
	if f == (engine.Failure{}) {
		return nil, nil
	}
	if f.End == 0 {
		f.Attempt = 0 // otherwise, the next attempt could adopt the note
	}
	if f.At == 0 {
		f.At = f.Buried
	}
	r := f.Append(nil)
	if !r.Valid() {
		return nil, badRequest("failure: unknown policy %.40q", in.Policy)
	}
	return r, nil
}

// putAgain puts a job from its description. A reserved job becomes ready.
func putAgain(e *engine.Engine, now int64, j *importedJob) error {
	spec := engine.Spec{Pri: j.Priority, Delay: jobjson.DelayAgain(&j.Job), TTR: j.TTR, Again: true, Buried: j.State == engine.Buried.String()}
	id, o := e.PutInto(now, []byte(j.Tube), spec, j.Bytes())
	if o == engine.OK && j.failure != nil {
		o = e.SetFailure(id, j.failure)
	}
	return outcomeProblem(o)
}
