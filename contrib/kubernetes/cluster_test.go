package kubernetes

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
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
	if want := "cluster join /var/lib/beanpole " + first + " --listen " + own + " --join-token-file /tokens/$(POD) --bootstrap"; args != want {
		t.Errorf("a pod joins with\n%s\nwant\n%s", args, want)
	}
	if join.Image != serve.Image {
		t.Error("the two containers differ in what they run")
	}
	if !slices.Contains(serve.Env, core.EnvVar{Name: "BEANPOLE_CLUSTER", Value: "true"}) {
		t.Error("a pod whose volume is lost is a single server")
	}

	if _, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "cluster/init"); err != nil {
		t.Error(err)
	}

	// The first member is made by a step of its own, on the volume of the first pod.
	claim := object(t, "cluster/init/claim.yaml").(*core.PersistentVolumeClaim)
	job := object(t, "cluster/init/job.yaml").(*batch.Job)
	volume, once := set.Spec.VolumeClaimTemplates[0], job.Spec.Template.Spec
	if claim.Name != volume.Name+"-"+set.Name+"-0" || !reflect.DeepEqual(claim.Spec, volume.Spec) || once.Volumes[0].PersistentVolumeClaim.ClaimName != claim.Name {
		t.Errorf("the first member is made on the volume %v", claim)
	}
	if args := strings.Join(once.Containers[0].Args, " "); args != "cluster init /var/lib/beanpole --listen "+first || *job.Spec.BackoffLimit != 0 {
		t.Errorf("the first member is made with %s", args)
	}
	pod := set.Spec.Template.Spec
	if !reflect.DeepEqual(once.SecurityContext, pod.SecurityContext) || !reflect.DeepEqual(once.Containers[0].SecurityContext, serve.SecurityContext) {
		t.Error("the step that makes the first member differs from the pods in what it runs, or as whom")
	}
}
