package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/beanpole-mq/beanpole/internal/adminsocket"
)

func TestMain(m *testing.M) {
	os.Setenv("GORACE", noRaceSleep) // for commands that run without their own environment
	flag.Set("test.parallel", "6")   // most tests wait; the command line overrides it
	adminsocket.System = cmp.Or(os.Getenv("XDG_RUNTIME_DIR"), os.TempDir())
	testscript.Main(m, map[string]func(){"beanpole": main})
}

// The scripts in testdata/script use these commands in addition to testscript's own:
//
//	fails CODE ARG...               beanpole must fail with that code and one line on stderr
//	exits CODE PROGRAM ARG...       the program must exit with that code
//	server NAME [VAR=VALUE...] [ARG...]
//	                                start beanpole in the background, wait until it is ready, and
//	                                set $NAME_addr, $NAME_addr2, ..., $NAME_admin and $NAME_pid
//	server NAME -fds N ...          the same, with N listening sockets passed as systemd does
//	talk ADDR LINE...               send the lines, then quit; the replies are the stdout
//	worker ADDR LINE...             send the lines and stay connected, without reading
//	flood ADDR                      request far more than fits in a socket, and read only the start of the reply
//	fetch NAME STATUS PATH [TOKEN]  get a path of a server's admin API, and check the status
//	recipes NAME JOURNAL FILE CHAPTER
//	                                run the commands in a chapter of a page, which must succeed
//	examples NAME FILE              run the examples of a page against the admin API of a server
//	port NAME                       set $NAME to a free port of 127.0.0.1
//	until REGEXP PROGRAM ARG...     repeat the program until its stdout matches; the stdout is then the match
//	damage DIR middle|end           change bytes in the middle or at the end of a stopped member's log
//	plant DIR JOB                   delete a job in the journal of a member without a log entry
//	signal NAME SIGNAL              send TERM, INT, HUP, USR1 or KILL to a server
//	logs NAME REGEXP                wait until the server has logged a match
//	exited NAME CODE                wait until the server has exited, with this code
//	killed NAME                     wait until a signal has ended the server
//	beanstalkd NAME ARG...          start the real beanstalkd, and set $NAME_addr and $NAME_pid
//	flip FILE OFFSET                change the byte at that offset
//	cut FILE N                      cut the last N bytes off
//
// $DOC is the directory of the pages. $BINLOGS contains recorded beanstalkd files; see
// package binlog.
func TestScript(t *testing.T) {
	runScripts(t, testscript.Params{Dir: filepath.Join("testdata", "script")}, scriptServer, "beanpole")
}

// TestScriptBeanstalkd runs the scripts of commands that support every server, with the
// real beanstalkd instead of beanpole.
func TestScriptBeanstalkd(t *testing.T) {
	if _, err := exec.LookPath("beanstalkd"); err != nil {
		t.Skip(err)
	}
	files, err := filepath.Glob(filepath.Join("testdata", "script", "cli*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	runScripts(t, testscript.Params{Files: files}, func(ts *testscript.TestScript, neg bool, args []string) {
		scriptBeanstalkd(ts, neg, args[:1])
	}, "beanstalkd")
}

// runScripts runs scripts with the given implementation of the command server. The name
// of its server is a condition: [on:beanpole] or [on:beanstalkd].
func runScripts(t *testing.T, params testscript.Params, server func(*testscript.TestScript, bool, []string), name string) {
	t.Parallel()
	binlogs, err := filepath.Abs("../../internal/journal/binlog/testdata")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := filepath.Abs("../../doc")
	if err != nil {
		t.Fatal(err)
	}
	params.RequireUniqueNames = true
	params.RequireExplicitExec = true
	params.Setup = func(env *testscript.Env) error {
		env.Values["servers"] = make(map[string]*process)
		env.Setenv("GORACE", noRaceSleep)
		env.Setenv("BINLOGS", binlogs)
		env.Setenv("DOC", doc)
		env.Setenv("XDG_RUNTIME_DIR", env.WorkDir) // for the local sockets of servers
		return nil
	}
	params.Cmds = map[string]func(*testscript.TestScript, bool, []string){
		"exits":  scriptExits,
		"fails":  scriptFails,
		"server": server,
		"talk":   scriptTalk,
		"worker": scriptWorker,
		"flood":  scriptFlood,
		"fetch":  scriptFetch,
		"port":   scriptPort,
		"until":  scriptUntil,
		"damage": scriptDamage,
		"plant":  scriptPlant,
		"signal": scriptSignal,
		"logs":   scriptLogs,
		"exited": scriptExited,
		"killed": scriptKilled,

		"beanstalkd": scriptBeanstalkd,
		"examples":   scriptExamples,
		"recipes":    scriptRecipes,
		"flip":       scriptFlip,
		"cut":        scriptCut,
	}
	params.Condition = func(cond string) (bool, error) {
		switch cond {
		case "on:beanpole", "on:beanstalkd":
			return cond == "on:"+name, nil
		case "root":
			return os.Getuid() == 0, nil
		case "beanstalkd":
			_, err := exec.LookPath("beanstalkd")
			return err == nil, nil
		case "ipv6":
			l, err := net.Listen("tcp6", "[::1]:0")
			if err != nil {
				return false, nil
			}
			return true, l.Close()
		}
		return false, fmt.Errorf("unknown condition %q", cond)
	}
	testscript.Run(t, params)
}

// noRaceSleep disables the pause of a second at exit, in which the race detector waits
// for reports of other goroutines.
const noRaceSleep = "atexit_sleep_ms=0"

// patience is the timeout for expected events.
const patience = 2 * time.Minute

// adminAddress matches the log line with the address of the admin API.
var adminAddress = regexp.MustCompile(`serving the admin API" address=(\S+)`)

func scriptFetch(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: fetch NAME STATUS PATH [TOKEN]")
	}
	r, err := http.NewRequest("GET", "http://"+adminOf(ts, args[0])+args[2], nil)
	ts.Check(err)
	if len(args) > 3 {
		r.Header.Set("Authorization", "Bearer "+args[3])
	}
	resp, err := http.DefaultClient.Do(r)
	ts.Check(err)
	defer resp.Body.Close()
	_, err = io.Copy(ts.Stdout(), resp.Body)
	ts.Check(err)
	if strconv.Itoa(resp.StatusCode) != args[1] {
		ts.Fatalf("%s: status %d, want %s", args[2], resp.StatusCode, args[1])
	}
}

// adminOf returns the address of a server's admin API.
func adminOf(ts *testscript.TestScript, name string) string {
	text := running(ts, false, []string{name}, 1).Log.String()
	addr := adminAddress.FindStringSubmatch(text)
	if addr == nil {
		ts.Fatalf("%s serves no admin API", name)
	}
	return addr[1]
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARG...]")
	}
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](ts.Exec(args[1], args[2:]...)); ok {
		code = exit.ExitCode()
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// slowLines matches log lines of a start on a slow machine: one per second while it reads
// a journal, and the duration of slow syncs.
var slowLines = regexp.MustCompile(`(?m)^time=\S+ level=(INFO msg="reading the journal"|WARN msg="a sync of the journal (was slow|is under way: clients wait for their replies)") .*\n`)

func scriptFails(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: fails CODE [ARG...]")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "beanpole", args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Run()
	ts.Stderr().Write(stderr.Bytes())
	ts.Stdout().Write(stdout.Bytes())
	if code := cmd.ProcessState.ExitCode(); strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s\n%s", code, args[0], stderr.Bytes())
	}
	line := slowLines.ReplaceAllString(stderr.String(), "")
	if !strings.HasPrefix(line, "beanpole: ") || strings.Index(line, "\n") != len(line)-1 {
		ts.Fatalf("stderr is not one line that begins with beanpole:\n%s", line)
	}
	if stdout.Len() > 0 {
		ts.Fatalf("stdout is not empty:\n%s", stdout.Bytes())
	}
}
