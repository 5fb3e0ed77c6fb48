package kubernetes

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// The manifests of a cluster are what Kubernetes knows, and agree with one another: members reach each other by the names of
// their pods in the service without an address, at the port that their container has.
func TestCluster(t *testing.T) {
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "cluster")
	if err != nil {
		t.Fatal(err)
	}
	text, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	services := map[string]*core.Service{}
	var set *apps.StatefulSet
	var budget *policy.PodDisruptionBudget
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		switch object := decode(t, document).(type) {
		case *apps.StatefulSet:
			set = object
		case *core.Service:
			services[object.Name] = object
		case *policy.PodDisruptionBudget:
			budget = object
		default:
			t.Errorf("nothing is known of %T", object)
		}
	}
	if set == nil || budget == nil || *set.Spec.Replicas != 3 || budget.Spec.MaxUnavailable.IntValue() != 1 {
		t.Fatalf("want three members, of which one may be away: %v, %v", set, budget)
	}
	names := services[set.Spec.ServiceName]
	if names == nil || names.Spec.ClusterIP != core.ClusterIPNone || !names.Spec.PublishNotReadyAddresses {
		t.Fatalf("the members have no names before they are ready: %v", names)
	}
	join, serve := set.Spec.Template.Spec.InitContainers[0], set.Spec.Template.Spec.Containers[0]
	var ports []string
	for _, s := range services {
		for _, p := range s.Spec.Ports {
			if !slices.ContainsFunc(serve.Ports, func(c core.ContainerPort) bool { return c.Name == p.TargetPort.StrVal && c.ContainerPort == p.Port }) {
				t.Errorf("no container has the port %s of service %s", p.Name, s.Name)
			}
			ports = append(ports, p.Name)
		}
	}
	if !slices.Contains(ports, "members") {
		t.Error("no service has the port of the members")
	}
	first, own := set.Name+"-0."+set.Spec.ServiceName+":11400", "$(POD)."+set.Spec.ServiceName+":11400"
	args := strings.Join(join.Args, " ")
	if want := "cluster join /var/lib/beanpole " + first + " --listen " + own + " --token-file /tokens/$(POD) --bootstrap"; args != want {
		t.Errorf("a pod joins with\n%s\nwant\n%s", args, want)
	}
	if join.Image != serve.Image || join.SecurityContext == nil || serve.SecurityContext == nil {
		t.Error("the two containers differ in what they run, or one is not confined")
	}
}
