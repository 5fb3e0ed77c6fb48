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
)

const workLong = `Run COMMAND for each job of the tubes, with the body as its standard input. The exit
status of COMMAND decides what becomes of the job.

  0      the job is deleted
  100    it is buried at once: it will never succeed
  other  it is released, to be tried again after 1, 2, 4, 8 ... seconds, at most an hour,
         a quarter more or less; when it was tried --tries times it is buried, and a kick
         grants as many tries again

Until COMMAND ends the job is touched, so its time to run does not limit COMMAND; --timeout
does. After it COMMAND gets SIGTERM, SIGKILL 3 seconds later, and the job has failed.
These variables describe the job:

  BEANPOLE_JOB      its id             BEANPOLE_TRIES    which try this is, from 1
  BEANPOLE_TUBE     its tube           BEANPOLE_AGE      seconds since it was put
  BEANPOLE_PRI      its priority       BEANPOLE_ADDR     its server

What COMMAND prints goes where this prints; with --json to standard error, and standard
output gets an object for each job.

With SIGTERM or SIGINT it takes no more jobs and waits for the commands that run. After
--stop they get SIGTERM too, and their jobs go to other workers. A second signal ends it
at once: the commands go on, and their jobs go to other workers. COMMAND is not run by a
shell: sh -c '...' does that.`

// statusBury is the exit status of a command whose job will never succeed. It is
// that of qmail and its kin for permanent failures.
const statusBury = 100

// stopGrace is how long a command may take to end when it is told to.
const stopGrace = 3 * time.Second

// workOptions say what to work on, and how.
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
				hint = "; tubes come before --, as in: beanpole work mail -- COMMAND"
			}
			return cliutil.UsageError("there is no command %s: %w%s", args[0], errors.Unwrap(err), hint)
		}
		w := &jobRunner{session: s, path: path, args: args}
		return w.run(ctx, opt)
	})
	cmd.Use = "work [options] [TUBE...] -- COMMAND [ARG...]"
	cmd.Long = workLong
	cmd.Example = "  beanpole work mail -- sendmail -t\n  beanpole work --concurrency 8 urls -- sh -c 'curl -sSfO \"$(cat)\"'"
	f := cmd.Flags()
	s.defineTube(cmd, "work on `TUBES`, like the arguments")
	f.FuncP("concurrency", "c", "run `N` commands at a time (1)", cliutil.IntoCount(&opt.concurrency, "how many"))
	f.UintVar(&opt.tries, "tries", worker.DefaultMaxTries, "bury a job that has failed `N` times; 0: never")
	cliutil.DurationVar(f, &opt.timeout, "timeout", "", 0, worker.DefaultTimeout, "end a command that runs longer than this `TIME`;\n0: never")
	cliutil.DurationVar(f, &opt.stop, "stop", "", 0, worker.DefaultStopTimeout, "when told to stop, let commands run for this `TIME`;\n0: as long as they like")
	f.SetInterspersed(false) // what follows COMMAND is its own
	return cmd
}

// takeTubes takes the tubes from the arguments, which stand before "--", and returns the
// command.
func (s *session) takeTubes(args []string) (command []string, err error) {
	i := slices.Index(args, "--")
	if i < 0 {
		return args, nil
	}
	for _, name := range args[:i] {
		if strings.HasPrefix(name, "-") {
			return nil, cliutil.UsageError("option %s must come before the tubes", name)
		}
	}
	s.tubes = append(s.tubes, args[:i]...)
	if args = args[i+1:]; len(args) == 0 {
		return nil, cliutil.UsageError("work needs a COMMAND after --")
	}
	return args, nil
}

// A jobRunner runs a command for each job.
type jobRunner struct {
	*session
	path string
	args []string // with the name first

	running atomic.Int64 // commands

	mu sync.Mutex // of what is printed
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
		CountFirst:  true,
		Timeout:     cmp.Or(opt.timeout, client.Never),
		StopTimeout: cmp.Or(opt.stop, client.Never),
		Hooks: worker.Hooks{
			Finish: r.finished,
			Error:  r.noJobs,
			Server: r.connection,
		},
		Logger: slog.New(slog.DiscardHandler), // the hooks say it in the words of the other commands
	})
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { r.sayWaiting(opt.stop) })()
	return w.Run(ctx)
}

// sayWaiting says why the first control-C does not end the program.
func (r *jobRunner) sayWaiting(stop time.Duration) {
	n := r.running.Load()
	if n == 0 {
		return
	}
	most := "as long as it takes"
	if stop > 0 {
		most = "for " + stop.String() + " at the most"
	}
	r.say("no more jobs are taken; waiting for %s, %s; a second signal ends this at once", cliutil.Count(int(n), "command"), most)
}

// try looks whether there is a server that lets us have the tubes, and returns them. A worker waits for
// both, but here a person may have mistaken them.
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
	if j.Tries == 0 { // a server that does not say
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
	// A group of its own: control-C at the terminal is for us, and what the command
	// has started ends with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = stopGrace
	r.running.Add(1)
	err := cmd.Run()
	r.running.Add(-1)
	if errors.Is(err, syscall.EPIPE) && cmd.ProcessState != nil && cmd.ProcessState.Success() {
		err = nil // it did not want to read all of the body
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == statusBury {
		return worker.Bury(err)
	}
	return err
}

// stdout is where commands print: a file of the system where there is one, so that
// it is theirs and not copied.
func (r *jobRunner) stdout() io.Writer {
	if r.JSON {
		return os.Stderr
	}
	return os.Stdout
}

// An outcome is what became of a job, as JSON has it.
type outcome struct {
	ID     uint64  `json:"id"`
	Action string  `json:"action"`
	Tries  int     `json:"tries"`
	Delay  int64   `json:"delay"`
	Took   float64 `json:"seconds"`
	Error  string  `json:"error"`
}

// finished tells what has become of a job: of each with JSON, else of those that
// are not deleted.
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
			r.say("job %d, try %d: %s; released for %s", j.ID, o.Tries, text, o.Delay.Round(time.Second))
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

// connection tells when the server is away, and when it is back.
func (r *jobRunner) connection(addr string, err error) {
	if err != nil {
		r.say("no connection to %s: %v; trying again", addr, err)
	} else {
		r.say("connected to %s again", addr)
	}
}

// noJobs tells why jobs cannot be taken, but for a connection, of which connection tells.
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
