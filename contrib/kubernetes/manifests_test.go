package kubernetes

import (
	"bytes"
	"os"
	"reflect"
	"slices"
	"strconv"
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
)

// A manifest is all that "kubectl apply -k" sends, by its types.
type manifest struct {
	set      *apps.StatefulSet
	service  *core.Service            // for clients
	services map[string]*core.Service // all, by name
	config   *core.ConfigMap
	budget   *policy.PodDisruptionBudget
	network  *networking.NetworkPolicy
}

// decoder knows the kinds and refuses fields that they do not have.
func decoder(t *testing.T) runtime.Decoder {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apps.AddToScheme, batch.AddToScheme, core.AddToScheme, networking.AddToScheme, policy.AddToScheme, monitoring.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}

func decode(t *testing.T, text []byte) runtime.Object {
	t.Helper()
	object, _, err := decoder(t).Decode(text, nil, nil)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return object
}

// object returns what a file has.
func object(t *testing.T, file string) runtime.Object {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, text)
}

// build runs kustomize in a directory.
func build(t *testing.T, dir string) manifest {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	m := manifest{services: map[string]*core.Service{}}
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		switch object := decode(t, document).(type) {
		case *apps.StatefulSet:
			m.set = object
		case *core.Service:
			m.services[object.Name] = object
		case *core.ConfigMap:
			m.config = object
		case *policy.PodDisruptionBudget:
			m.budget = object
		case *networking.NetworkPolicy:
			m.network = object
		default:
			t.Errorf("nothing is known of %T", object)
		}
	}
	m.service = m.services["beanpole"]
	if m.set == nil || m.service == nil || m.config == nil || m.budget == nil || m.network == nil {
		t.Fatalf("something is missing in\n%s", text)
	}
	return m
}

// Selectors find the pods, names of ports and volumes exist, and the pods have no rights
// that they do not need.
func TestManifests(t *testing.T) {
	for _, dir := range []string{".", "cluster"} {
		t.Run(dir, func(t *testing.T) { build(t, dir).check(t) })
	}
}

func (m manifest) check(t *testing.T) {
	pod := m.set.Spec.Template
	const label = "app.kubernetes.io/name"
	for what, got := range map[string]string{
		"the stateful set":  m.set.Spec.Selector.MatchLabels[label],
		"the budget":        m.budget.Spec.Selector.MatchLabels[label],
		"the policy":        m.network.Spec.PodSelector.MatchLabels[label],
		"the pod":           pod.Labels[label],
		"the service's own": m.service.Labels[label],
	} {
		if got != "beanpole" {
			t.Errorf("%s has the label %q", what, got)
		}
	}
	container := pod.Spec.Containers[0]
	ports := map[string]int32{}
	for _, p := range container.Ports {
		ports[p.Name] = p.ContainerPort
	}
	for name, s := range m.services {
		if s.Spec.Selector[label] != "beanpole" {
			t.Errorf("the service %s selects %v", name, s.Spec.Selector)
		}
		for _, p := range s.Spec.Ports {
			if ports[p.TargetPort.StrVal] != p.Port {
				t.Errorf("the service %s leads port %d to %q, the pod has %v", name, p.Port, p.TargetPort.StrVal, ports)
			}
		}
	}
	admitted := map[string]networking.NetworkPolicyPeer{}
	for _, rule := range m.network.Spec.Ingress {
		admitted[rule.Ports[0].Port.StrVal] = rule.From[0]
	}
	for name := range ports {
		if _, ok := admitted[name]; !ok {
			t.Errorf("the policy lets nobody to the port %s", name)
		}
	}
	if len(admitted) != len(ports) || len(admitted["queue"].PodSelector.MatchLabels) != 0 {
		t.Errorf("the policy is about other ports than %v, or not every pod of the namespace may use the queue: %v", ports, admitted)
	}
	volumes := map[string]bool{m.set.Spec.VolumeClaimTemplates[0].Name: true}
	for _, v := range pod.Spec.Volumes {
		volumes[v.Name] = true
		if v.ConfigMap != nil && v.ConfigMap.Name != m.config.Name {
			t.Errorf("the configuration is %s, the pod mounts %s", m.config.Name, v.ConfigMap.Name)
		}
	}
	for _, c := range append(pod.Spec.InitContainers, container) {
		for _, mount := range c.VolumeMounts {
			if !volumes[mount.Name] {
				t.Errorf("there is no volume %s", mount.Name)
			}
		}
		if s := c.SecurityContext; !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || s.Capabilities.Drop[0] != "ALL" || !*pod.Spec.SecurityContext.RunAsNonRoot {
			t.Errorf("the container %s may do more than it needs: %v", c.Name, s)
		}
	}
}

// The pod that looks at a journal finds that of the stateful set, as the same user and
// with the same image.
func TestJournalPod(t *testing.T) {
	m := build(t, ".")
	pod, server := object(t, "journal.yaml").(*core.Pod).Spec, m.set.Spec.Template.Spec
	claim := m.set.Spec.VolumeClaimTemplates[0].Name + "-" + m.set.Name + "-0"
	if got := pod.Volumes[0].PersistentVolumeClaim.ClaimName; got != claim {
		t.Errorf("it mounts %s, the jobs are on %s", got, claim)
	}
	tool, container := pod.Containers[0], server.Containers[0]
	if tool.Image != container.Image {
		t.Errorf("its image is %s, the server's %s", tool.Image, container.Image)
	}
	if !reflect.DeepEqual(pod.SecurityContext, server.SecurityContext) || !reflect.DeepEqual(tool.SecurityContext, container.SecurityContext) {
		t.Errorf("it has other rights than the server: %v, %v", pod.SecurityContext, tool.SecurityContext)
	}
	journal := printed(t, m)["journal"]
	if tool.VolumeMounts[0].MountPath != journal || !slices.Equal(tool.Args, []string{"journal", "check", journal}) {
		t.Errorf("it runs %q with %v, the journal is %s", tool.Args, tool.VolumeMounts, journal)
	}
}

// What the Prometheus operator is asked for exists.
func TestOperator(t *testing.T) {
	monitor := object(t, "servicemonitor.yaml").(*monitoring.ServiceMonitor)
	for _, dir := range []string{".", "cluster"} {
		m := build(t, dir)
		for key, value := range monitor.Spec.Selector.MatchLabels {
			if m.service.Labels[key] != value {
				t.Errorf("%s: the service has not the label %s=%s", dir, key, value)
			}
		}
		if m.service.Labels[monitor.Spec.JobLabel] != "beanpole" {
			t.Errorf("%s: the job would be called %q, the alerts ask for beanpole", dir, m.service.Labels[monitor.Spec.JobLabel])
		}
		if !slices.ContainsFunc(m.service.Spec.Ports, func(p core.ServicePort) bool { return p.Name == monitor.Spec.Endpoints[0].Port }) {
			t.Errorf("%s: the service has no port %s", dir, monitor.Spec.Endpoints[0].Port)
		}
	}
	object(t, "prometheusrule.yaml")
}

// The program uses the ports and directories of the pod.
func TestProgram(t *testing.T) {
	m := build(t, ".")
	container := m.set.Spec.Template.Spec.Containers[0]
	effective := printed(t, m)
	ports := map[string]string{}
	for _, p := range container.Ports {
		ports[p.Name] = strconv.Itoa(int(p.ContainerPort))
	}
	mounted := map[string]bool{}
	for _, mount := range container.VolumeMounts {
		mounted[mount.MountPath] = true
	}
	if effective["port"] != ports["queue"] {
		t.Errorf("the queue is on port %s, the pod says %s", effective["port"], ports["queue"])
	}
	if !mounted[effective["journal"]] {
		t.Errorf("nothing is mounted at the journal's %s", effective["journal"])
	}
	limit := container.Resources.Limits.Memory().Value()
	if jobs := atoi(t, effective["max-memory"]); jobs == 0 || jobs > limit*2/3 {
		t.Errorf("jobs may take %d bytes, the container %d", jobs, limit)
	}
	storage := m.set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().Value()
	if jobs := atoi(t, effective["max-memory"]); storage < jobs*5/2+100e6 {
		t.Errorf("the volume has %d bytes, too few for jobs of %d", storage, jobs)
	}
}
