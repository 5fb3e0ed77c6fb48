package kubernetes

import (
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	batch "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The server of the manifests is ready, Prometheus can ask it, and clients can use it but not manage it.
func TestServerPod(t *testing.T) {
	onNode(t, func(n *node) {
		m := build(t, ".")
		p := n.start(m)[0]
		p.ready()
		p.serves(m)
	})
}

// The members of the manifests are ready when what the first lines of kustomization.yaml say is done.
func TestClusterPods(t *testing.T) {
	onNode(t, func(n *node) {
		m := build(t, "cluster")
		pods := n.start(m)
		once := object(t, "cluster/init/job.yaml").(*batch.Job).Spec.Template.Spec.Containers[0] // on the volume of the first pod
		if out, err := pods[0].command(t.Context(), &once, once.Args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		pods[0].ready()
		for _, joins := range pods[1:] {
			token := pods[0].exec("cluster", "join-token", "/var/lib/beanpole")
			joins.write(filepath.Join("tokens", joins.name), token, 0o600)
		}
		for _, p := range pods {
			p.ready()
			p.serves(m)
		}
	})
}

// serves uses the pod as clients do, and as the Prometheus operator does.
func (p *pod) serves(m manifest) {
	p.t.Helper()
	monitor := object(p.t, "servicemonitor.yaml").(*monitoring.ServiceMonitor).Spec.Endpoints[0]
	for _, port := range m.service.Spec.Ports {
		if port.Name == monitor.Port {
			p.get(port.TargetPort, monitor.Path)
		}
	}
	queue, admin := net.JoinHostPort(p.ip, p.port(intstr.FromString("queue"))), net.JoinHostPort(p.ip, p.port(intstr.FromString("admin")))
	p.run(p.program, "put", "-a", queue, "mail", "hello")
	if out := p.run(p.program, "reserve", "-a", queue, "mail", "--delete"); !strings.Contains(out, "hello") {
		p.t.Errorf("%s: %s", p.name, out)
	}
	resp, err := http.Post("http://"+admin+"/api/v1/drain", "application/json", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode < 400 {
		p.t.Errorf("%s: anybody can drain it: %s", p.name, resp.Status)
	}
}
