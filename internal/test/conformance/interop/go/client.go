package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/beanstalkd/go-beanstalk"
)

// clientChecks returns checks of the life of a job with go-beanstalk. Each check has its
// own tube.
func clientChecks(addr string) []check {
	life := []struct {
		name string
		run  func(*session) error
	}{
		{"put, reserve, delete", putReserveDelete},
		{"the smallest priority comes first, then the oldest", priorities},
		{"the oldest of all watched tubes", oldestOfTubes},
		{"a delayed job becomes ready at its time", delayed},
		{"a waiting worker is woken", woken},
		{"release with a priority and a delay", release},
		{"bury, peek-buried, kick", bury},
		{"kick-job", kickJob},
		{"reserve-job", reserveJob},
		{"touch restarts the TTR; time-left is rounded down", touch},
		{"DEADLINE_SOON", deadline},
		{"the job of a silent worker goes to another", expiry},
		{"peek and the heads", peeks},
		{"unicode and binary bodies", bodies},
		{"the largest body works; a larger one gets JOB_TOO_BIG, and the connection stays open", tooBig},
		{"NOT_FOUND", notFound},
		{"lists", lists},
		{"stats", stats},
		{"stats-tube", statsTube},
		{"pause, and a pause of 0 resumes at once", pause},
		{"a closed connection releases its jobs to other workers", ends},
	}
	if os.Getenv("POLICIES") != "" {
		life = append(life, struct {
			name string
			run  func(*session) error
		}{"the third release buries the job if a policy requires it", thirdRelease})
	}
	var list []check
	for i, l := range life {
		list = append(list, check{l.name, func() error {
			s, err := newSession(addr, fmt.Sprintf("go-%d", i))
			if err != nil {
				return err
			}
			defer s.p.Close()
			defer s.w.Close()
			return l.run(s)
		}})
	}
	return list
}

// A session is a producer and a worker on one tube.
type session struct {
	addr string
	p, w *beanstalk.Conn
	tube *beanstalk.Tube    // the tube of p
	set  *beanstalk.TubeSet // the tubes of w
}

func newSession(addr, tube string) (*session, error) {
	p, err := beanstalk.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	w, err := beanstalk.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &session{addr, p, w, beanstalk.NewTube(p, tube), beanstalk.NewTubeSet(w, tube)}, nil
}

func (s *session) put(body string, pri uint32, delay, ttr time.Duration) uint64 {
	id, err := s.tube.Put([]byte(body), pri, delay, ttr)
	if err != nil {
		return 0 // the check will not find the job
	}
	return id
}

// reserved checks the body of the worker's next job. An empty body means that there must
// be no job.
func (s *session) reserved(timeout time.Duration, want string) error {
	_, body, err := s.set.Reserve(timeout)
	if want == "" {
		return refused(err, beanstalk.ErrTimeout)
	}
	if err != nil {
		return err
	}
	return equal("body", string(body), want)
}

// job checks entries of stats-job, given as key=value.
func (s *session) job(id uint64, want ...string) error {
	got, err := s.p.StatsJob(id)
	if err != nil {
		return err
	}
	for _, entry := range want {
		key, value, _ := strings.Cut(entry, "=")
		if got[key] != value {
			return fmt.Errorf("%s: got %s, want %s", key, got[key], value)
		}
	}
	return nil
}

func refused(err, want error) error {
	if errors.Is(err, want) {
		return nil
	}
	return fmt.Errorf("got %v, want %v", err, want)
}

func putReserveDelete(s *session) error {
	id := s.put("hello", 0, 0, time.Minute)
	got, body, err := s.set.Reserve(0)
	return errors.Join(err, equal("id", got, id), equal("body", string(body), "hello"),
		s.w.Delete(id), refused(s.w.Delete(id), beanstalk.ErrNotFound))
}

func priorities(s *session) error {
	s.put("third", 10, 0, time.Minute)
	s.put("first", 1, 0, time.Minute)
	s.put("second", 1, 0, time.Minute)
	return errors.Join(s.reserved(0, "first"), s.reserved(0, "second"), s.reserved(0, "third"))
}

func oldestOfTubes(s *session) error {
	other := beanstalk.NewTube(s.p, s.tube.Name+"-2")
	s.set.Name[other.Name] = true
	s.put("1", 0, 0, time.Minute)
	if _, err := other.Put([]byte("2"), 0, 0, time.Minute); err != nil {
		return err
	}
	s.put("3", 0, 0, time.Minute)
	return errors.Join(s.reserved(0, "1"), s.reserved(0, "2"), s.reserved(0, "3"))
}

func delayed(s *session) error {
	s.put("later", 0, time.Second, time.Minute)
	return errors.Join(s.reserved(0, ""), s.reserved(3*time.Second, "later"))
}

func woken(s *session) error {
	done := make(chan error, 1)
	go func() { done <- s.reserved(5*time.Second, "wake up") }()
	time.Sleep(50 * time.Millisecond)
	s.put("wake up", 0, 0, time.Minute)
	return <-done
}

func release(s *session) error {
	id := s.put("again", 0, 0, time.Minute)
	return errors.Join(s.reserved(0, "again"), s.w.Release(id, 7, 100*time.Second),
		s.job(id, "state=delayed", "pri=7", "delay=100", "time-left=99", "releases=1"),
		refused(s.w.Release(id, 0, 0), beanstalk.ErrNotFound))
}

func thirdRelease(s *session) error {
	s, err := newSession(s.addr, "go-acts")
	if err != nil {
		return err
	}
	defer s.p.Close()
	defer s.w.Close()
	id := s.put("again", 0, 0, time.Minute)
	for range 3 {
		err = errors.Join(err, s.reserved(time.Second, "again"), s.w.Release(id, 0, 0))
	}
	return errors.Join(err, s.job(id, "state=buried", "releases=3"))
}

func bury(s *session) error {
	id := s.put("bad", 0, 0, time.Minute)
	err := errors.Join(s.reserved(0, "bad"), s.w.Bury(id, 3), s.job(id, "state=buried", "pri=3", "buries=1"))
	got, _, err2 := s.tube.PeekBuried()
	n, err3 := s.tube.Kick(10)
	return errors.Join(err, err2, err3, equal("buried", got, id), equal("kicked", n, 1), s.job(id, "state=ready", "kicks=1"))
}

func kickJob(s *session) error {
	id := s.put("x", 0, 100*time.Second, time.Minute)
	return errors.Join(s.p.KickJob(id), s.job(id, "state=ready"), refused(s.p.KickJob(id), beanstalk.ErrNotFound))
}

func reserveJob(s *session) error {
	id := s.put("by id", 0, 100*time.Second, time.Minute)
	body, err := s.w.ReserveJob(id)
	_, again := s.p.ReserveJob(id)
	return errors.Join(err, equal("body", string(body), "by id"), refused(again, beanstalk.ErrNotFound))
}

func touch(s *session) error {
	id := s.put("slow", 0, 0, 10*time.Second)
	err := errors.Join(s.reserved(0, "slow"), s.job(id, "time-left=9"))
	time.Sleep(1100 * time.Millisecond)
	return errors.Join(err, s.job(id, "time-left=8"), s.w.Touch(id), s.job(id, "time-left=9"),
		refused(s.p.Touch(id), beanstalk.ErrNotFound))
}

func deadline(s *session) error {
	s.put("short", 0, 0, time.Second)
	err := s.reserved(0, "short")
	_, _, soon := s.set.Reserve(0)
	return errors.Join(err, refused(soon, beanstalk.ErrDeadline))
}

func expiry(s *session) error {
	id := s.put("lost", 0, 0, time.Second)
	if _, err := s.p.ReserveJob(id); err != nil {
		return err
	}
	return errors.Join(s.reserved(3*time.Second, "lost"), s.job(id, "state=reserved", "timeouts=1", "reserves=2"))
}

func peeks(s *session) error {
	_, _, err := s.tube.PeekReady()
	if err := refused(err, beanstalk.ErrNotFound); err != nil {
		return err
	}
	ready, later := s.put("ready", 0, 0, time.Minute), s.put("later", 0, 100*time.Second, time.Minute)
	body, err := s.p.Peek(ready)
	head, _, err2 := s.tube.PeekReady()
	next, _, err3 := s.tube.PeekDelayed()
	_, gone := s.p.Peek(1 << 60)
	return errors.Join(err, err2, err3, equal("body", string(body), "ready"), equal("head", head, ready),
		equal("delayed", next, later), refused(gone, beanstalk.ErrNotFound))
}

func bodies(s *session) error {
	var all []byte
	for b := range 256 {
		all = append(all, byte(b))
	}
	all = append(all, "\r\n\x00\r\n"...)
	var errs []error
	for _, body := range []string{"naïve ☕ 日本 🫘", string(all), "", "\r\n", "delete 1\r\nquit\r\n"} {
		s.put(body, 0, 0, time.Minute)
		_, got, err := s.set.Reserve(0)
		errs = append(errs, err, equal("body", string(got), body))
	}
	return errors.Join(errs...)
}

func tooBig(s *session) error {
	largest := bytes.Repeat([]byte("x"), 65535)
	s.put(string(largest), 0, 0, time.Minute)
	_, got, err := s.set.Reserve(0)
	_, refusal := s.tube.Put(append(largest, 'x'), 0, 0, time.Minute)
	s.put("small", 0, 0, time.Minute)
	return errors.Join(err, equal("size", len(got), 65535), refused(refusal, beanstalk.ErrJobTooBig), s.reserved(0, "small"))
}

func notFound(s *session) error {
	_, job := s.p.StatsJob(1 << 60)
	_, tube := beanstalk.NewTube(s.p, "no-such-tube").Stats()
	var errs []error
	for _, err := range []error{job, s.p.Delete(1 << 60), s.p.Release(1<<60, 0, 0), s.p.Bury(1<<60, 0), s.p.Touch(1 << 60)} {
		errs = append(errs, refused(err, beanstalk.ErrNotFound))
	}
	if tube != nil { // Stats does not use the tube, so the tube need not exist on the server
		errs = append(errs, refused(tube, beanstalk.ErrNotFound))
	}
	return errors.Join(errs...)
}

func lists(s *session) error {
	s.put("x", 0, 0, time.Minute)
	tubes, err := s.p.ListTubes()
	if err != nil {
		return err
	}
	return errors.Join(equal("first", tubes[0], "default"), equal("tubes", strings.Contains(fmt.Sprint(tubes), s.tube.Name), true))
}

func stats(s *session) error {
	before, err := s.p.Stats()
	s.put("x", 0, 0, time.Minute)
	after, err2 := s.p.Stats()
	var m, n int
	fmt.Sscan(before["total-jobs"], &m)
	fmt.Sscan(after["total-jobs"], &n)
	return errors.Join(err, err2, equal("total-jobs", n, m+1), equal("max-job-size", after["max-job-size"], 65535))
}

func statsTube(s *session) error {
	s.put("x", 0, 0, time.Minute)
	s.put("y", 2000, 0, time.Minute)
	s.put("z", 0, time.Minute, time.Minute)
	got, err := s.tube.Stats()
	return errors.Join(err, equal("urgent", got["current-jobs-urgent"], 1), equal("ready", got["current-jobs-ready"], 2),
		equal("delayed", got["current-jobs-delayed"], 1), equal("total", got["total-jobs"], 3), equal("keys", len(got), 14))
}

func pause(s *session) error {
	s.put("x", 0, 0, time.Minute)
	return errors.Join(s.tube.Pause(100*time.Second), s.reserved(0, ""), s.tube.Pause(0), s.reserved(0, "x"))
}

func ends(s *session) error {
	s.put("mine", 0, 0, time.Minute)
	gone, err := newSession(s.addr, s.tube.Name)
	if err != nil {
		return err
	}
	defer gone.p.Close()
	return errors.Join(gone.reserved(0, "mine"), gone.w.Close(), s.reserved(3*time.Second, "mine"))
}
