package soak

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beanpole-mq/beanpole/internal/test/conformance"
	"github.com/beanpole-mq/beanpole/internal/test/parallel"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

var (
	soakProgram = flag.String("soak.program", "", "run this program instead of building cmd/beanpole; what is there counts at each start")
	soakClients = flag.Int("soak.clients", 12, "connections at a time")
)

// TestSoak lets servers live and die, with all faults, for as long as is asked.
func TestSoak(t *testing.T) {
	t.Parallel()
	s := newSoak(t)
	s.mount()
	end := time.Now().Add(seeds.Time(4 * time.Second))
	report := time.Now().Add(time.Minute)
	lives := 0
	for ; time.Now().Before(end) && !t.Failed(); lives++ {
		args, env := s.options()
		length := time.Second + time.Duration(s.rng.ExpFloat64()*float64(4*time.Second))
		if lives%15 == 14 {
			length *= 6
		}
		s.life(args, env, min(length, time.Until(end)), faults)
		if time.Now().After(report) {
			t.Logf("%v to go: %v", time.Until(end).Round(time.Second), s.count)
			report = time.Now().Add(time.Minute)
		}
	}
	t.Logf("rounds: %d\n%s", lives, s.count.table())
}

// TestCrash kills the server under load, again and again on the same journal.
func TestCrash(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"synced before the reply": {"-s", "20000"},
		"synced in between":       {"-s", "20000", "-f", "50"},
		"large segments":          {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSoak(t)
			args := append([]string{"-l", "127.0.0.1:0", "-b", s.dir}, args...)
			for range seeds.Rounds(t, 2) {
				s.life(args, nil, time.Duration(100+s.rng.IntN(400))*time.Millisecond, nil)
			}
			t.Log(s.count)
		})
	}
}

// A soak is the lives of servers on one journal.
type soak struct {
	t       *testing.T
	seed    uint64
	rng     *rand.Rand
	program string
	dir     string // the journal's
	tmpfs   bool   // it is on a small disk
	account *account
	count   tally
	history []string // of this life and those before: options, faults, ends; the last ones
}

// note adds to the history.
func (s *soak) note(format string, args ...any) {
	s.count.mu.Lock()
	defer s.count.mu.Unlock()
	s.history = append(s.history, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
	s.history = s.history[max(0, len(s.history)-40):]
}

func newSoak(t *testing.T) *soak {
	seed := seeds.One(t)
	s := &soak{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), program: *soakProgram, count: tally{new(sync.Mutex), make(map[string]int)}}
	if s.program == "" {
		var err error
		if s.program, err = build(); err != nil {
			t.Fatal(err)
		}
	}
	home, err := os.MkdirTemp("", "soak")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			os.RemoveAll(home)
			os.RemoveAll(home + "-before-the-last-start")
		}
	})
	s.dir = filepath.Join(home, "journal")
	if err := os.Mkdir(s.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	s.account = newAccount(s.count)
	return s
}

// mount puts the journal on a small disk, with every other seed and if that is
// permitted.
func (s *soak) mount() {
	home := filepath.Dir(s.dir)
	if s.seed%2 == 0 || unix.Mount("tmpfs", home, "tmpfs", 0, "size=160m") != nil {
		return
	}
	s.tmpfs = true
	if err := os.Mkdir(s.dir, 0o777); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if s.t.Failed() {
			os.CopyFS(home+"-failed", os.DirFS(home))
		}
		unix.Unmount(home, unix.MNT_DETACH)
	})
}

// options draws those of a life.
func (s *soak) options() (args, env []string) {
	pick := func(of ...[]string) { args = append(args, of[s.rng.IntN(len(of))]...) }
	args = []string{"-b", s.dir, "-l", "127.0.0.1:0"}
	pick(nil, []string{"-l", "unix:" + filepath.Join(filepath.Dir(s.dir), "socket")})
	pick(nil, nil, []string{"-f", "0"}, []string{"-f", "10"}, []string{"-f", "50"}, []string{"-F"}) // only the process dies, not the system
	pick(nil, []string{"-s", "512"}, []string{"-s", "4096"}, []string{"-s", "20000"}, []string{"-s", "65536"}, []string{"-s", "1000000"})
	pick(nil, nil, []string{"-V"}, []string{"-VV"})
	pick(nil, nil, []string{"--max-connections", "10"})
	cutsOff := [][]string{nil, nil, {"--stall-timeout", "2s"}, {"--idle-timeout", "4s"}}[s.rng.IntN(4)]
	s.account.cutsOff = cutsOff != nil
	args = append(args, cutsOff...)
	if n := s.rng.IntN(4); n > 0 {
		env = append(env, fmt.Sprintf("GOMAXPROCS=%d", n))
	}
	return args, env
}

// life is that of one server: start, audit, clients, faults, end.
func (s *soak) life(args, env []string, length time.Duration, faults []fault) {
	l := s.account
	l.diskFails, l.draining = false, false
	s.count.add("starts", 1)
	s.note("beanpole %s", strings.Join(append(env, args...), " "))
	before := filepath.Dir(s.dir) + "-before-the-last-start" // for those who look into a failure
	os.RemoveAll(before)
	if err := os.CopyFS(before, os.DirFS(s.dir)); err != nil {
		s.t.Fatal(err)
	}
	srv, err := start(s.program, args, env)
	if srv != nil {
		defer func() {
			srv.cmd.Process.Kill()
			<-srv.exited
		}()
	}
	fail := func(err error) {
		s.t.Errorf("%v\nseed %d, in %s\nso far: %v\nwhat happened last:\n%s\nthe server's log:\n%s\n...\n%s", err, s.seed, s.dir, s.count,
			strings.Join(s.history, "\n"), srv.log, srv.log.end())
	}
	if err != nil {
		fail(err)
		return
	}
	l.restarted()
	if err := l.audit(s.rng, srv.addrs[0]); err != nil {
		fail(err)
		return
	}
	errs := make(chan error, 100)
	noFaults, noClients := make(chan struct{}), make(chan struct{})
	var mishaps, clients sync.WaitGroup
	for range *soakClients {
		rng := s.draw()
		clients.Go(func() { s.client(srv, rng, noClients, errs) })
	}
	if len(faults) > 0 {
		m := &mishap{soak: s, rng: s.draw(), srv: srv, over: noFaults}
		mishaps.Go(func() { m.happen(faults, errs) })
	}
	stopFaults := sync.OnceFunc(func() { close(noFaults); mishaps.Wait() })
	stopClients := sync.OnceFunc(func() { close(noClients); clients.Wait() })
	select {
	case <-time.After(length):
	case err = <-errs:
	case <-srv.exited:
		err = fmt.Errorf("the server ended by itself: %v", srv.cmd.ProcessState)
	}
	switch {
	case err != nil || len(faults) == 0:
		s.kill(srv)
	default:
		err = s.end(srv, relaxed(args), stopFaults, stopClients)
	}
	stopFaults()
	stopClients()
	select {
	case e := <-errs:
		err = e
	default:
	}
	if srv.log.says("panic:") || srv.log.says("fatal error:") || srv.log.says("DATA RACE") {
		err = fmt.Errorf("the server panicked (%v)", err)
	}
	if err != nil {
		fail(err)
	}
}

// relaxed reports whether a reply does not wait for the disk. Then what was
// answered before a fault may be lost if the process dies before the journal is
// written again (doc/operations.md, section 9).
func relaxed(args []string) bool {
	at := slices.Index(args, "-f")
	return slices.Contains(args, "-F") || at >= 0 && args[at+1] != "0"
}

func (s *soak) draw() *rand.Rand { return rand.New(rand.NewPCG(s.rng.Uint64(), 0)) }

// client is one after the other, until the life is over.
func (s *soak) client(srv *server, rng *rand.Rand, over <-chan struct{}, errs chan<- error) {
	for {
		select {
		case <-over:
			return
		case <-srv.exited:
			return
		default:
		}
		if tell(visit(s.account, rng, srv.addrs[rng.IntN(len(srv.addrs))], over), errs) {
			return
		}
	}
}

func (s *soak) kill(srv *server) {
	s.count.add("ends by SIGKILL", 1)
	s.note("SIGKILL")
	srv.cmd.Process.Kill()
	<-srv.exited
}

// end ends a server in one of several ways.
func (s *soak) end(srv *server, relaxed bool, stopFaults, stopClients func()) error {
	how := s.rng.IntN(8)
	if relaxed || how < 3 {
		stopFaults()
	}
	if how%2 == 0 {
		s.kill(srv)
		return nil
	}
	if how == 1 {
		if s.rng.IntN(2) == 0 {
			s.drain(srv)
		}
		stopClients()
		if err := s.resources(srv); err != nil {
			return err
		}
	}
	s.count.add("ends by SIGTERM", 1)
	s.note("SIGTERM")
	srv.cmd.Process.Signal(syscall.SIGTERM)
	stopFaults()
	select {
	case <-srv.exited:
	case <-time.After(patience / 4):
		if !srv.log.says("msg=\"stopping") { // strace may have lost the signal
			srv.cmd.Process.Signal(syscall.SIGTERM)
		}
	}
	select {
	case <-srv.exited:
	case <-time.After(patience):
		return fmt.Errorf("the server does not end %v after SIGTERM", patience)
	}
	if !relaxed && how > 2 && s.account.mayFail() {
		return nil // a fault may be going on
	}
	if code := srv.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("SIGTERM: %v", srv.cmd.ProcessState)
	}
	if s.rng.IntN(3) > 0 {
		return nil
	}
	s.count.add("journals checked", 1)
	if out, err := exec.Command(s.program, "journal", "check", s.dir).CombinedOutput(); err != nil {
		return fmt.Errorf("journal check after an orderly stop: %w\n%s", err, out)
	}
	return nil
}

// drain makes the server refuse jobs, and lets clients find out.
func (s *soak) drain(srv *server) {
	s.account.mu.Lock()
	s.account.draining = true
	s.account.mu.Unlock()
	s.count.add("drains", 1)
	s.note("SIGUSR1")
	srv.cmd.Process.Signal(syscall.SIGUSR1)
	time.Sleep(time.Second)
}

// resources waits until a server without clients has given back what they took.
func (s *soak) resources(srv *server) error {
	s.count.add("resources looked at", 1)
	const memory = 400 << 20 // for some ten MB of jobs, and all that clients made it take
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		sockets, all := srv.sockets()
		resident := srv.resident()
		if sockets <= len(srv.addrs) && all < 60 && resident < memory {
			s.count.most("descriptors left", all)
			s.count.most("MB left", resident>>20)
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("without clients for %v, the server has %d sockets, %d descriptors and %d MB", patience, sockets, all, resident>>20)
		}
	}
}

// tell passes on what the server may not do, if err is that, and reports it.
func tell(err error, errs chan<- error) bool {
	if !errors.Is(err, errWrong) {
		return false
	}
	select {
	case errs <- err:
	default:
	}
	return true
}

// A tally counts what was done.
type tally struct {
	mu *sync.Mutex
	n  map[string]int
}

func (c tally) add(what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[what] += n
}

// most notes the largest value.
func (c tally) most(what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n["most "+what] = max(c.n["most "+what], n)
}

func (c tally) String() string { return strings.Join(c.lines("%s %d"), ", ") }

// table returns the counts as Markdown.
func (c tally) table() string { return strings.Join(c.lines("| %s | %d |"), "\n") }

func (c tally) lines(format string) (lines []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(c.n)) {
		lines = append(lines, fmt.Sprintf(format, what, c.n[what]))
	}
	return lines
}

// buildDir holds the binary that build made; TestMain removes it.
var buildDir string

var build = sync.OnceValues(func() (path string, err error) {
	if buildDir, err = os.MkdirTemp("", "beanpole"); err != nil {
		return "", err
	}
	path = filepath.Join(buildDir, "beanpole")
	return path, conformance.Build(path)
})

func TestMain(m *testing.M) {
	code := parallel.M{M: m, Most: 8}.Run()
	if buildDir != "" {
		os.RemoveAll(buildDir)
	}
	os.Exit(code)
}
