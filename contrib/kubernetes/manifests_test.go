package kubernetes

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/beanpole-mq/beanpole/internal/test/exectest"
)

// Kubernetes and the Prometheus operator accept every kind and field, and the program
// accepts every configuration and command.
func TestManifests(t *testing.T) {
	program := build(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apps.AddToScheme, batch.AddToScheme, core.AddToScheme, networking.AddToScheme, policy.AddToScheme, monitoring.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()

	documents := map[string][]byte{}
	for _, dir := range []string{".", "cluster", "cluster/init"} {
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if documents[dir], err = built.AsYaml(); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"journal.yaml", "prometheusrule.yaml", "scaledobject.yaml", "servicemonitor.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents[file] = text
	}

	for name, text := range documents {
		for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
			if bytes.Contains(document, []byte("\nkind: ScaledObject\n")) {
				continue // belongs to KEDA, whose module has far more dependencies than all others
			}
			object, _, err := decoder.Decode(document, nil, nil)
			if err != nil {
				t.Errorf("%s: %v in\n%s", name, err, document)
				continue
			}
			switch o := object.(type) {
			case *core.ConfigMap:
				config := filepath.Join(t.TempDir(), "beanpole.toml")
				if err := os.WriteFile(config, []byte(o.Data["beanpole.toml"]), 0o600); err != nil {
					t.Fatal(err)
				}
				if out, err := exec.Command(program, "config", "print", "--config", config).CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", name, err, out)
				}
			case *apps.StatefulSet:
				checkPod(t, program, o.Spec.Template.Spec)
			case *batch.Job:
				checkPod(t, program, o.Spec.Template.Spec)
			case *core.Pod:
				checkPod(t, program, o.Spec)
			}
		}
	}
}

// checkPod checks that the program has the commands and options of a pod's containers.
// Probes must use ports of their container, and containers must have only the necessary
// rights.
func checkPod(t *testing.T, program string, pod core.PodSpec) {
	t.Helper()
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		checkCommand(t, program, c.Args)
		ports := map[string]bool{}
		for _, p := range c.Ports {
			ports[p.Name] = true
		}
		for _, probe := range []*core.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
			if probe != nil && !ports[probe.HTTPGet.Port.StrVal] {
				t.Errorf("the container %s has no port %v for a probe", c.Name, probe.HTTPGet.Port)
			}
		}
		s := c.SecurityContext
		if s == nil || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) {
			t.Errorf("the container %s has more rights than it needs", c.Name)
		}
	}
}

func checkCommand(t *testing.T, program string, args []string) {
	t.Helper()
	words := args
	if i := slices.IndexFunc(args, func(arg string) bool { return strings.ContainsAny(arg[:1], "-/") }); i >= 0 {
		words = args[:i]
	}
	usage := strings.Join(append([]string{"beanpole"}, words...), " ") // the help of an unknown command is that of its parent
	if out, err := exec.Command(program, append(args, "--help")...).CombinedOutput(); err != nil || !bytes.Contains(out, []byte(usage)) {
		t.Errorf("%q: %v\n%s", args, err, out)
	}
}

// The commands in the file for Docker Compose exist in the program.
func TestCompose(t *testing.T) {
	text, err := os.ReadFile("../compose/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var project struct {
		Services map[string]struct{ Command []string }
	}
	if err := yaml.Unmarshal(text, &project); err != nil {
		t.Fatal(err)
	}
	program := build(t)
	for _, s := range project.Services {
		checkCommand(t, program, s.Command)
	}
}

func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "beanpole")
	if err := exectest.Build(program); err != nil {
		t.Fatal(err)
	}
	return program
}
