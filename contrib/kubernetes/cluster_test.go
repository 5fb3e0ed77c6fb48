package kubernetes

import (
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
)

// The manifests of a cluster are what Kubernetes knows, and agree with one another: members reach each other by the names of
// their pods in the service without an address, at the port that their container has.
func TestCluster(t *testing.T) {
	m := build(t, "cluster")
	set := m.set
	if *set.Spec.Replicas != 3 || m.budget.Spec.MaxUnavailable.IntValue() != 1 {
		t.Fatalf("want three members, of which one may be away: %v, %v", set, m.budget)
	}
	names := m.services[set.Spec.ServiceName]
	if names == nil || names.Spec.ClusterIP != core.ClusterIPNone || !names.Spec.PublishNotReadyAddresses {
		t.Fatalf("the members have no names before they are ready: %v", names)
	}
	join, serve := set.Spec.Template.Spec.InitContainers[0], set.Spec.Template.Spec.Containers[0]
	if !slices.ContainsFunc(names.Spec.Ports, func(p core.ServicePort) bool { return p.Name == "members" }) {
		t.Error("the names are not for the port of the members")
	}
	first, own := set.Name+"-0."+set.Spec.ServiceName+":11400", "$(POD)."+set.Spec.ServiceName+":11400"
	args := strings.Join(join.Args, " ")
	if want := "cluster join /var/lib/beanpole " + first + " --listen " + own + " --token-file /tokens/$(POD) --bootstrap"; args != want {
		t.Errorf("a pod joins with\n%s\nwant\n%s", args, want)
	}
	if join.Image != serve.Image {
		t.Error("the two containers differ in what they run")
	}
}
