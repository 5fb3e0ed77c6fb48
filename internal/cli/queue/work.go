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
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/worker"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/flags"
)

const workLong = `Run COMMAND for each job of the tubes, with the body as its standard input. The exit status of
COMMAND has these effects:

  0      delete the job
  100    bury the job: another attempt would not help
  other  release the job with a delay of 1, 2, 4, 8 ... seconds, up to an hour, plus or
         minus a quarter; after --tries attempts, bury it. A kick grants --tries more attempts.

The job is touched while COMMAND runs, so its TTR does not limit COMMAND. After --timeout,
COMMAND gets SIGTERM, and SIGKILL 3 seconds later; the attempt has failed. These variables
describe the job:

  BEANPOLE_JOB   id             BEANPOLE_TRIES  number of the attempt, from 1
  BEANPOLE_TUBE  tube           BEANPOLE_AGE    seconds since the put
  BEANPOLE_PRI   priority       BEANPOLE_ADDR   server

COMMAND prints to the standard output of work. With --json it prints to standard error, and
work prints an object for each job. The last line of standard error becomes the reason of a
failed attempt.

After SIGTERM or SIGINT, work reserves no more jobs and waits for the running commands. After
the time in --stop they get SIGTERM, and their jobs go to other workers. A second signal ends
work at once: the commands continue, unless they write to standard error, and their jobs go to
other workers. A child of COMMAND that keeps standard error open can use it for 3 more seconds.
For shell syntax, use sh -c '...' as COMMAND.`

// statusBury is the exit status that buries a job. qmail uses it for permanent failures.
const statusBury = 100

// stopGrace is the time between SIGTERM and SIGKILL for a command.
const stopGrace = 3 * time.Second

// workOptions contains the options of the command work.
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
	cmd = s.command("work", "[ARG...]", "run a command for each job", func(ctx context.Context, args []string) error {
		tubes := cmd.ArgsLenAtDash() // number of tubes
		if tubes < 0 || tubes == len(args) {
			return exit.UsageError("work requires -- and a COMMAND, as in: beanpole work mail -- COMMAND")
		}
		s.tubes, args = append(s.tubes, args[:tubes]...), args[tubes:]
		path, err := exec.LookPath(args[0])
		if err != nil {
			return exit.UsageError("command %s: %w", args[0], errors.Unwrap(err))
		}
		w := &jobRunner{session: s, path: path, args: args}
		return w.run(ctx, opt)
	})
	cmd.Use = "work [options] [TUBE...] -- COMMAND [ARG...]"
	cmd.Long = workLong
	cmd.Example = "  beanpole work mail -- sendmail -t\n  beanpole work --concurrency 8 urls -- sh -c 'curl -sSfO \"$(cat)\"'"
	f := cmd.Flags()
	s.defineTube(cmd, "work on `TUBES`, in addition to the arguments")
	f.FuncP("concurrency", "c", "run up to `N` commands at a time (default 1)", flags.IntoCount(&opt.concurrency, "the number of commands"))
	f.UintVar(&opt.tries, "tries", worker.DefaultMaxTries, "bury a job after `N` failed attempts; 0 never does")
	cliutil.DurationVar(f, &opt.timeout, "timeout", "", 0, worker.DefaultTimeout, "stop a command that runs longer than this `TIME`;\n0 is unlimited")
	cliutil.DurationVar(f, &opt.stop, "stop", "", 0, worker.DefaultStopTimeout, "after a signal, wait up to this `TIME` for running\ncommands; 0 is unlimited")
	return cmd
}

// A jobRunner runs a command for each job.
type jobRunner struct {
	*session
	path string
	args []string // args of the command, starting with its name

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
		Logger: slog.New(slog.DiscardHandler), // the hooks print errors in the same way as other commands
	})
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() {
		r.say("stopping; waiting for running commands; a second signal exits at once")
	})()
	return w.Run(ctx)
}

// try checks that the server accepts the connection and the tubes, and returns the tubes.
// A worker would keep trying, but the user might have mistyped the address or a tube.
func (r *jobRunner) try(ctx context.Context, names []string) (tubes []string, err error) {
	c, err := r.Server.Dial(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.Ping(ctx); err != nil {
		return nil, err
	}
	return watchOnly(ctx, c, names)
}

// handle runs the command for a job.
func (r *jobRunner) handle(ctx context.Context, j *worker.Job) error {
	if j.Tries == 0 { // the server sends no facts about jobs
		st, err := j.Stats(ctx)
		if err != nil {
			return err
		}
		j.Tube, j.Tries, j.Age, j.Priority = st.Tube, int(st.Reserves), st.Age, st.Priority
	}
	cmd := exec.CommandContext(ctx, r.path) // the user's command line
	cmd.Args = r.args
	cmd.Stdin = bytes.NewReader(j.Body)
	cmd.Stdout = os.Stdout // a file, so that output is not copied
	if r.JSON {
		cmd.Stdout = os.Stderr
	}
	var last tail
	cmd.Stderr = io.MultiWriter(os.Stderr, &last)
	cmd.Env = append(os.Environ(),
		"BEANPOLE_ADDR="+j.Server,
		"BEANPOLE_JOB="+strconv.FormatUint(j.ID, 10),
		"BEANPOLE_TUBE="+j.Tube,
		"BEANPOLE_PRI="+strconv.FormatUint(uint64(j.Priority), 10),
		"BEANPOLE_TRIES="+strconv.Itoa(j.Tries),
		"BEANPOLE_AGE="+strconv.FormatInt(seconds(j.Age), 10),
	)
	// In its own process group, a command does not receive Control-C from the terminal,
	// and its children end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = stopGrace
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // a child that is still running has standard error open
	}
	exit, failed := errors.AsType[*exec.ExitError](err)
	if reason := last.line(); failed && reason != "" {
		err = explainedError{err, reason}
	}
	if failed && exit.ExitCode() == statusBury {
		return worker.Bury(err)
	}
	return err
}

// An explainedError is an error whose reason is the last line of a command's standard
// error.
type explainedError struct {
	error
	reason string
}

func (e explainedError) Unwrap() error { return e.error }

// Reason returns the note that the worker sends to the server.
func (e explainedError) Reason() string { return e.reason }

// A tail keeps the last bytes written, up to maxTail.
type tail []byte

const maxTail = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	*t = (*t)[max(0, len(*t)-maxTail):]
	return len(p), nil
}

// line returns the last line that is not blank.
func (t tail) line() string {
	text := strings.TrimSpace(string(t))
	return text[strings.LastIndexByte(text, '\n')+1:]
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

// finished prints the outcome of a job. Without --json, it omits deleted jobs.
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

// connection prints that a connection was lost or restored.
func (r *jobRunner) connection(addr string, err error) {
	if err != nil {
		r.say("no connection to %s: %v; trying again", addr, err)
	} else {
		r.say("connected to %s again", addr)
	}
}

// noJobs prints the reason why no job can be reserved, unless connection has printed it.
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
