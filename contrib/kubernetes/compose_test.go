package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// A service is what the test knows of one in a file for docker compose.
type service struct {
	Image     string
	Command   []string
	Profiles  []string
	Hostname  string
	Restart   string
	StopGrace string `json:"stop_grace_period"`
	Ports     []string
	Volumes   []string

	Environment map[string]string

	DependsOn map[string]struct{ Condition string } `json:"depends_on"`
}

// A project is what docker compose makes of its file, with processes in place of containers: a volume is a directory,
// and a host an address of this machine.
type project struct {
	t        *testing.T
	program  string
	volumes  string
	network  string // the first bytes of the addresses
	services map[string]service
}

// The members of the file find each other when they are started for the first time, and when all of them are started again.
func TestCompose(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("wants all addresses of 127.0.0.0/8")
	}
	p := newProject(t, "../compose/compose.yaml")
	p.up("once")()
	for _, round := range []string{"first", "second"} {
		down := p.up("")
		p.vote()
		p.run("put", "-a", p.host("member-3")+":11300", "mail", round)
		if round == "second" {
			p.run("peek", "-a", p.host("member-2")+":11300", "1")
		}
		down()
	}

	// A first member whose volume is lost is nothing else than that, and nothing makes another one.
	if err := os.RemoveAll(p.volume("jobs-1")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(p.volume("jobs-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	err := p.command(t.Context(), p.services["member-1"]).Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 10 {
		t.Errorf("a member without its volume: %v", err)
	}
	for name, s := range p.services {
		if s.Profiles == nil && slices.Contains(s.Command, "init") {
			t.Errorf("%s makes a member each time", name)
		}
	}
}

func newProject(t *testing.T, file string) *project {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Name     string
		Services map[string]service
		Volumes  map[string]any
		Image    any `json:"x-image"`
		Join     any `json:"x-join"`
		Member   any `json:"x-member"`
		Once     any `json:"x-once"`
	}
	if err := yaml.UnmarshalStrict(text, &f); err != nil {
		t.Fatal(err)
	}
	p := &project{t: t, program: buildProgram(t), volumes: t.TempDir(), services: f.Services}
	p.network = fmt.Sprintf("127.%d.%d", 1+rand.IntN(254), rand.IntN(256))
	for name := range f.Volumes {
		if err := os.Mkdir(p.volume(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p *project) volume(name string) string { return filepath.Join(p.volumes, name) }

// host returns the address of a host, whose name ends with its number.
func (p *project) host(name string) string { return p.network + "." + name[len(name)-1:] }

// vote waits until all members vote.
func (p *project) vote() {
	ctx, cancel := context.WithTimeout(p.t.Context(), 5*time.Minute)
	defer cancel()
	for {
		// Its exit code says whether there is a majority yet.
		text, _ := exec.CommandContext(ctx, p.program, "cluster", "status", p.volume("jobs-1"), "--json").Output()
		if strings.Count(string(text), `"role":"voter","reachable":true`) == 2 && strings.Contains(string(text), `"quorum":true`) {
			return
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			p.t.Fatalf("not all members vote: %s", text)
		}
	}
}

// run runs a command of the program, and returns what it prints.
func (p *project) run(args ...string) string {
	p.t.Helper()
	out, err := exec.CommandContext(p.t.Context(), p.program, args...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("beanpole %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// command returns the process of a service.
func (p *project) command(ctx context.Context, s service) *exec.Cmd {
	var names []string
	for _, o := range p.services {
		if o.Hostname != "" {
			names = append(names, o.Hostname, p.host(o.Hostname))
		}
	}
	journal := ""
	for _, v := range s.Volumes {
		parts := strings.Split(v, ":")
		names = append(names, parts[1], p.volume(parts[0]))
		if parts[1] == "/var/lib/beanpole" {
			journal = p.volume(parts[0])
		}
	}
	cmd := exec.CommandContext(ctx, p.program)
	for _, arg := range s.Command {
		cmd.Args = append(cmd.Args, strings.NewReplacer(names...).Replace(arg))
	}
	cmd.Env = append(os.Environ(), "BEANPOLE_JOURNAL="+journal) // that of the image
	for name, value := range s.Environment {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if s.Hostname != "" {
		cmd.Env = append(cmd.Env, "BEANPOLE_LISTEN="+p.host(s.Hostname))
	}
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return cmd
}

// up starts all services of a profile, or those without one, when what they depend on is
// there, and returns what stops them.
func (p *project) up(profile string) (down func()) {
	ctx, cancel := context.WithCancel(p.t.Context())
	var all, running sync.WaitGroup
	started, completed := map[string]chan struct{}{}, map[string]chan struct{}{}
	services := maps.Clone(p.services)
	maps.DeleteFunc(services, func(_ string, s service) bool { return profile != strings.Join(s.Profiles, ",") })
	for name := range services {
		started[name], completed[name] = make(chan struct{}), make(chan struct{})
	}
	for name, s := range services {
		all.Go(func() {
			for on, how := range s.DependsOn {
				if !p.await(ctx, on, how.Condition, started[on], completed[on]) {
					cancel()
					return
				}
			}
			cmd := p.command(ctx, s)
			if s.Restart == "unless-stopped" {
				if err := cmd.Start(); err != nil {
					p.t.Errorf("%s: %v", name, err)
				}
				running.Go(func() { cmd.Wait() })
				close(started[name])
				return
			}
			close(started[name])
			if p.complete(ctx, name, s) {
				close(completed[name])
			} else {
				cancel()
			}
		})
	}
	all.Wait()
	stop := func() {
		cancel()
		running.Wait()
	}
	if p.t.Failed() {
		stop()
		p.t.FailNow()
	}
	return stop
}

// complete runs a service until it ends well, as often as it may.
func (p *project) complete(ctx context.Context, name string, s service) bool {
	restarts := 0
	if s.Restart != "" {
		if n, err := fmt.Sscanf(s.Restart, "on-failure:%d", &restarts); n != 1 {
			p.t.Errorf("%s: restart %q: %v", name, s.Restart, err)
			return false
		}
	}
	pause := 100 * time.Millisecond // that of Docker
	for i := 0; ; i++ {
		err := p.command(ctx, s).Run()
		if err == nil {
			return true
		}
		if i == restarts || ctx.Err() != nil {
			p.t.Errorf("%s: %v, after %d restarts", name, err, i)
			return false
		}
		time.Sleep(pause)
		pause *= 2
	}
}

// await waits for what a service depends on.
func (p *project) await(ctx context.Context, name, condition string, started, completed chan struct{}) bool {
	var ready chan struct{}
	switch condition {
	case "service_started":
		ready = started
	case "service_completed_successfully":
		ready = completed
	default: // service_healthy: a member is not without a majority, and those that wait for it may be that
		p.t.Errorf("a service waits for %s with the condition %s", name, condition)
		return false
	}
	select {
	case <-ready:
		return true
	case <-ctx.Done():
		return false
	}
}
