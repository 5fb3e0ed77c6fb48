package kubernetes

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/beanpole-mq/beanpole/internal/test/netns"
)

// programEnv is set where a test runs in namespaces of its own: to the program of the image.
const programEnv = "BEANPOLE_OF_THE_IMAGE"

// onNode runs the test again in namespaces of its own, where it is root and alone in the network, and there calls f. It
// skips the test where that is not possible.
func onNode(t *testing.T, f func(*node)) {
	if program := os.Getenv(programEnv); program != "" {
		n := &node{t: t, program: program}
		netns.IP(t, "link add name cni0 type bridge")
		netns.IP(t, "addr add 10.244.0.1/24 dev cni0")
		netns.IP(t, "link set cni0 up")
		f(n)
		return
	}
	t.Setenv(programEnv, buildProgram(t))
	if err := netns.Isolate(t, "ip link add name cni0 type bridge"); err != nil {
		t.Skip("no namespaces for users and networks, or no iproute2: ", err)
	}
}

// A node runs pods as a kubelet does, as far as their programs can tell: each has a network and files of its own, and is
// probed at its address. What confines containers is not there.
type node struct {
	t       *testing.T
	program string                       // that of the image
	configs map[string]map[string]string // config maps
	hosts   string                       // what names there are
}

func (n *node) run(program string, args ...string) string {
	n.t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		n.t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
	return string(out)
}

// A pod is one of a stateful set.
type pod struct {
	*node
	name, ip string
	spec     core.PodSpec
	root     string // the file system of its containers
	network  string // the id of a process that is in it
	log      bytes.Buffer
}

// ready waits until the pod is.
func (p *pod) ready() {
	p.t.Helper()
	c := p.spec.Containers[0]
	for _, probe := range []*core.Probe{c.LivenessProbe, c.ReadinessProbe} {
		p.get(probe.HTTPGet.Port, probe.HTTPGet.Path)
	}
}

// start starts the pods of a stateful set, which end with the test.
func (n *node) start(m manifest) []*pod {
	n.t.Helper()
	set := m.set
	n.configs = map[string]map[string]string{m.config.Name: m.config.Data}
	pods := make([]*pod, *set.Spec.Replicas)
	for i := range pods {
		p := &pod{node: n, name: fmt.Sprintf("%s-%d", set.Name, i), ip: fmt.Sprintf("10.244.0.%d", 10+i), spec: set.Spec.Template.Spec, root: n.t.TempDir()}
		n.hosts += fmt.Sprintf("%s %s %s.%s\n", p.ip, p.name, p.name, set.Spec.ServiceName)
		p.connect(fmt.Sprintf("veth%d", i))
		pods[i] = p
	}
	ctx, cancel := context.WithCancel(n.t.Context())
	var all sync.WaitGroup
	n.t.Cleanup(func() {
		cancel()
		all.Wait()
		for _, p := range pods {
			if n.t.Failed() {
				n.t.Logf("%s:\n%s", p.name, &p.log)
			}
		}
	})
	for _, p := range pods {
		p.fill()
		all.Go(func() { p.live(ctx) })
	}
	return pods
}

// connect gives the pod a network, in which it has its address, with a link to the node.
func (p *pod) connect(link string) {
	p.t.Helper()
	p.network = strconv.Itoa(netns.NewHost(p.t, link, p.ip, 24).Holder)
	netns.IP(p.t, "link set "+link+" master cni0")
}

// fill makes the files of the image, and the volumes.
func (p *pod) fill() {
	p.t.Helper()
	program, err := os.ReadFile(p.program)
	if err != nil {
		p.t.Fatal(err)
	}
	p.write("beanpole", string(program), 0o700)
	p.write("etc/hosts", p.hosts, 0o600)
	for _, c := range p.spec.Containers {
		for _, m := range c.VolumeMounts {
			for _, v := range p.spec.Volumes {
				if v.Name == m.Name && v.ConfigMap != nil {
					for name, text := range p.configs[v.ConfigMap.Name] {
						p.write(filepath.Join(m.MountPath, name), text, 0o600)
					}
				}
			}
		}
	}
}

// write writes a file of the pod.
func (p *pod) write(name, text string, mode os.FileMode) {
	p.t.Helper()
	name = filepath.Join(p.root, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		p.t.Fatal(err)
	}
}

// live runs the containers: those for the beginning until each has ended well, then the server.
func (p *pod) live(ctx context.Context) {
	for _, c := range append(p.spec.InitContainers, p.spec.Containers...) {
		for pause := 50 * time.Millisecond; ctx.Err() == nil; pause = min(2*pause, time.Second) { // the kubelet begins with ten seconds
			cmd := p.command(ctx, &c, c.Args...)
			cmd.Stdout, cmd.Stderr = &p.log, &p.log
			if cmd.Run() == nil {
				break
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
	}
}

// command returns how the program of a container's image is run in the container.
func (p *pod) command(ctx context.Context, c *core.Container, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "nsenter", "-t", p.network, "-n", "--root="+p.root, "/beanpole")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Env = imageEnv(p.t)
	variables := []string{}
	for _, e := range c.Env {
		if e.ValueFrom != nil && e.ValueFrom.FieldRef.FieldPath == "metadata.name" {
			e.Value = p.name
		}
		cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
		variables = append(variables, "$("+e.Name+")", e.Value)
	}
	for _, m := range c.VolumeMounts {
		if err := os.MkdirAll(filepath.Join(p.root, m.MountPath), 0o700); err != nil {
			p.t.Error(err)
		}
	}
	for _, arg := range args {
		cmd.Args = append(cmd.Args, strings.NewReplacer(variables...).Replace(arg))
	}
	return cmd
}

// exec is kubectl exec.
func (p *pod) exec(args ...string) string {
	p.t.Helper()
	out, err := p.command(p.t.Context(), &p.spec.Containers[0], args...).Output()
	if err != nil {
		p.t.Fatalf("%q: %v", args, err)
	}
	return string(out)
}

// port returns the number of a port of the server.
func (p *pod) port(name intstr.IntOrString) string {
	p.t.Helper()
	for _, c := range p.spec.Containers[0].Ports {
		if c.Name == name.StrVal {
			return strconv.Itoa(int(c.ContainerPort))
		}
	}
	p.t.Fatalf("the pod has no port %v", name)
	return ""
}

// get asks for a page from outside of the pod, until the answer is good.
func (p *pod) get(port intstr.IntOrString, path string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 2*time.Minute)
	defer cancel()
	url := "http://" + net.JoinHostPort(p.ip, p.port(port)) + path
	for {
		req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
		if err != nil {
			p.t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
			err = fmt.Errorf("%s", resp.Status)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			p.t.Fatalf("%s: %s: %v", p.name, url, err)
		}
	}
}

// imageEnv returns the environment of the image.
func imageEnv(t *testing.T) []string {
	text, err := os.ReadFile("../../dist/container/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(regexp.MustCompile(`(?m)^ENV (.*)`).FindSubmatch(text)[1]))
}
