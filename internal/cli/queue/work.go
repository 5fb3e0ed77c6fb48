package queue

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/worker"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/flags"
)

const workLong = `Run COMMAND for each job of the tubes, with the body as its standard input. The exit
status of COMMAND decides about the job:

  0      delete the job
  100    bury the job: another attempt would not help
  other  release the job with a delay of 1, 2, 4, 8 ... seconds, up to an hour, plus or
         minus a quarter; after --tries attempts, bury it. A kick allows as many
         attempts again.

The job is touched while COMMAND runs, so its TTR does not limit COMMAND. After --timeout,
COMMAND gets SIGTERM, SIGKILL 3 seconds later, and the attempt has failed. These variables
describe the job:

  BEANPOLE_JOB   id             BEANPOLE_TRIES  number of the attempt, from 1
  BEANPOLE_TUBE  tube           BEANPOLE_AGE    seconds since the put
  BEANPOLE_PRI   priority       BEANPOLE_ADDR   server

COMMAND prints to the standard output of work. With --json it prints to standard error, and
standard output gets an object for each job. The last line of standard error becomes the
reason of a failed attempt, if the server keeps reasons.

After SIGTERM or SIGINT, work takes no more jobs and waits for the running commands. After
--stop they get SIGTERM, and their jobs go to other workers. A second signal ends work at
once: the commands continue, unless they write to a standard error that work reads for a
reason, and their jobs go to other workers. For shell syntax, use
sh -c '...' as COMMAND.`

// statusBury is the exit status that buries a job. qmail uses it for permanent failures.
const statusBury = 100

// stopGrace is the time between SIGTERM and SIGKILL for a command.
const stopGrace = 3 * time.Second

// workOptions are the options of the command work.
type workOptions struct {
	concurrency int
	tries       uint
	timeout     time.Duration
	stop        time.Duration
}

func newWork() *cobra.Command {
	opt := workOptions{concurrency: 1}
	var cmd *cobra.Command
	s := new(session)
	cmd = s.command("work", "COMMAND [ARG...]", "run a command for each job", func(ctx context.Context, args []string) (err error) {
		if cmd.ArgsLenAtDash() < 0 {
			if args, err = s.takeTubes(args); err != nil {
				return err
			}
		}
		path, err := exec.LookPath(args[0])
		if err != nil {
			hint := ""
			if len(s.tubes) == 0 {
				hint = "; name tubes before --, as in: beanpole work mail -- COMMAND"
			}
			return exit.UsageError("command %s: %w%s", args[0], errors.Unwrap(err), hint)
		}
		w := &jobRunner{session: s, path: path, args: args}
		return w.run(ctx, opt)
	})
	cmd.Use = "work [options] [TUBE...] -- COMMAND [ARG...]"
	cmd.Long = workLong
	cmd.Example = "  beanpole work mail -- sendmail -t\n  beanpole work --concurrency 8 urls -- sh -c 'curl -sSfO \"$(cat)\"'"
	f := cmd.Flags()
	s.defineTube(cmd, "work on `TUBES`, in addition to the argumentss")
	f.FuncP("concurrency", "c", "run up to `N` commands at a time (default 1)", flags.IntoCount(&opt.concurrency, "the number of commands"))
	f.UintVar(&opt.tries, "tries", worker.DefaultMaxTries, "bury a job after `N` failed attempts; 0 never does")
	cliutil.DurationVar(f, &opt.timeout, "timeout", "", 0, worker.DefaultTimeout, "end a command that runs longer than this `TIME`;\n0 is unlimited")
	cliutil.DurationVar(f, &opt.stop, "stop", "", 0, worker.DefaultStopTimeout, "after a signal, wait up to this `TIME` for running\ncommands; 0 is unlimited")
	f.SetInterspersed(false) // options after COMMAND belong to it
	return cmd
}

// takeTubes takes the tubes before "--" from the arguments, and returns the command.
func (s *session) takeTubes(args []string) (command []string, err error) {
	i := slices.Index(args, "--")
	if i < 0 {
		return args, nil
	}
	for _, name := range args[:i] {
		if strings.HasPrefix(name, "-") {
			return nil, exit.UsageError("option %s must come before the tubes", name)
		}
	}
	s.tubes = append(s.tubes, args[:i]...)
	if args = args[i+1:]; len(args) == 0 {
		return nil, exit.UsageError("work requires a COMMAND after --")
	}
	return args, nil
}

// A jobRunner runs a command for each job.
type jobRunner struct {
	*session
	path string
	args []string // starting with the name

	running atomic.Int64 // number of running commands
	notes   bool         // the server keeps reasons

	mu sync.Mutex // protects the output
}

func (r *jobRunner) run(ctx context.Context, opt workOptions) error {
	tubes, err := r.try(ctx, r.tubes)
	if err != nil {
		return err
	}
	server, err := r.Server.Options()
	if err != nil {
		return err
	}
	server.Reconnect = client.DefaultReconnect
	w, err := worker.New(r.handle, &worker.Options{
		Servers:     []string{r.Server.Addr},
		Client:      *server,
		Tubes:       tubes,
		Concurrency: opt.concurrency,
		MaxTries:    cmp.Or(int(opt.tries), -1),
		CheckTries:  true,
		Timeout:     cmp.Or(opt.timeout, client.Never),
		StopTimeout: cmp.Or(opt.stop, client.Never),
		Hooks: worker.Hooks{
			Finish: r.finished,
			Error:  r.noJobs,
			Server: r.connection,
		},
		Logger: slog.New(slog.DiscardHandler), // the hooks print errors like other commands
	})
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { r.sayWaiting(opt.stop) })()
	return w.Run(ctx)
}

// sayWaiting explains after the first signal why the program still runs.
func (r *jobRunner) sayWaiting(stop time.Duration) {
	n := r.running.Load()
	if n == 0 {
		return
	}
	most := "without a limit"
	if stop > 0 {
		most = "for up to " + stop.String()
	}
	r.say("taking no more jobs; waiting for %s %s; a second signal exits at once", cliutil.Count(int(n), "command"), most)
}

// try checks that the server accepts the connection and the tubes, and returns the tubes.
// A worker would wait for both, but a user might have mistyped them.
func (r *jobRunner) try(ctx context.Context, names []string) (tubes []string, err error) {
	c, err := r.Server.Dial(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.Ping(ctx); err != nil {
		return nil, err
	}
	caps, err := c.Caps(ctx)
	if err != nil {
		return nil, err
	}
	r.notes = slices.Contains(caps, "note")
	return watchOnly(ctx, c, names)
}

// handle runs the command for a job.
func (r *jobRunner) handle(ctx context.Context, j *worker.Job) error {
	if j.Tries == 0 { // a server without job metadata
		st, err := j.Stats(ctx)
		if err != nil {
			return err
		}
		j.Tube, j.Tries, j.Age, j.Priority = st.Tube, int(st.Reserves), st.Age, st.Priority
	}
	cmd := exec.CommandContext(ctx, r.path) // #nosec G204 -- the command line of the user
	cmd.Args = r.args
	cmd.Stdin = bytes.NewReader(j.Body)
	cmd.Stdout, cmd.Stderr = r.stdout(), os.Stderr
	cmd.Env = append(os.Environ(),
		"BEANPOLE_ADDR="+j.Server,
		"BEANPOLE_JOB="+strconv.FormatUint(j.ID, 10),
		"BEANPOLE_TUBE="+j.Tube,
		"BEANPOLE_PRI="+strconv.FormatUint(uint64(j.Priority), 10),
		"BEANPOLE_TRIES="+strconv.Itoa(j.Tries),
		"BEANPOLE_AGE="+strconv.FormatInt(seconds(j.Age), 10),
	)
	// In its own process group, a command gets no control-C of the terminal, and its
	// children end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = stopGrace
	r.running.Add(1)
	reason, err := r.execute(cmd)
	r.running.Add(-1)
	if errors.Is(err, syscall.EPIPE) && cmd.ProcessState != nil && cmd.ProcessState.Success() {
		err = nil // the command did not read the whole body
	}
	exit, failed := errors.AsType[*exec.ExitError](err)
	if failed && reason != "" {
		err = explainedError{err, reason}
	}
	if failed && exit.ExitCode() == statusBury {
		return worker.Bury(err)
	}
	return err
}

// An explainedError has the last line of a command's standard error as its reason.
type explainedError struct {
	error
	reason string
}

func (e explainedError) Unwrap() error { return e.error }

// Reason returns the note that the worker sends to the server.
func (e explainedError) Reason() string { return e.reason }

// execute runs a command and returns the last line of its standard error, if the server
// keeps reasons. Otherwise standard error is a file, so that nothing is copied.
func (r *jobRunner) execute(cmd *exec.Cmd) (reason string, err error) {
	if !r.notes {
		return "", cmd.Run()
	}
	out, in, err := os.Pipe()
	if err != nil {
		return "", err
	}
	cmd.Stderr = in
	err = cmd.Start()
	in.Close()
	if err != nil {
		out.Close()
		return "", err
	}
	var last tail
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		defer out.Close()
		_, _ = io.Copy(io.MultiWriter(os.Stderr, &last), out)
	}()
	err = cmd.Wait()
	select {
	case <-copied:
	case <-time.After(stderrGrace): // a child that still runs has the pipe
	}
	return last.line(), err
}

// stderrGrace is the time to read the last output of a command after its end.
const stderrGrace = 100 * time.Millisecond

// A tail keeps the last bytes written, up to maxTail.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const maxTail = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-maxTail):]
	return len(p), nil
}

// line returns the last line that is not blank.
func (t *tail) line() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(string(t.text))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// stdout returns the standard output of commands. It is a file, so that nothing is
// copied.
func (r *jobRunner) stdout() io.Writer {
	if r.JSON {
		return os.Stderr
	}
	return os.Stdout
}

// An outcome is the JSON of a finished job.
type outcome struct {
	ID     uint64  `json:"id"`
	Action string  `json:"action"`
	Tries  int     `json:"tries"`
	Delay  int64   `json:"delay"`
	Took   float64 `json:"seconds"`
	Error  string  `json:"error"`
}

// finished prints the outcome of a job. Without --json it omits deleted jobs.
func (r *jobRunner) finished(_ context.Context, j *worker.Job, o worker.Outcome) {
	text := ""
	switch {
	case errors.Is(o.Err, worker.ErrTimeout):
		text = "took longer than --timeout"
	case o.Err != nil:
		text = o.Err.Error()
	}
	if !r.JSON {
		switch o.Action {
		case worker.Deleted:
		case worker.Released:
			r.say("job %d, try %d: %s; released with a delay of %s", j.ID, o.Tries, text, o.Delay.Round(time.Second))
		default:
			r.say("job %d: %s; %s", j.ID, text, o.Action)
		}
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.PrintJSON(outcome{j.ID, string(o.Action), o.Tries, int64(o.Delay.Round(time.Second) / time.Second), o.Took.Seconds(), text})
	r.Out.Flush()
}

// connection reports a lost and a restored connection.
func (r *jobRunner) connection(addr string, err error) {
	if err != nil {
		r.say("no connection to %s: %v; trying again", addr, err)
	} else {
		r.say("connected to %s again", addr)
	}
}

// noJobs reports why no job can be reserved, unless connection reports it.
func (r *jobRunner) noJobs(err error) {
	if !errors.Is(err, client.ErrDisconnected) {
		r.say("%v; trying again", err)
	}
}

func (r *jobRunner) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	cliutil.Note(r.Err, format, args...)
}
