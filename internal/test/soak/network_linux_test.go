package soak

import (
	"fmt"
	"os"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/exectest"
	"github.com/beanpole-mq/beanpole/internal/test/netns"
)

// isolate runs the test again in its own namespaces. There it can partition the network
// and mount small disks without root and without changes to the machine. It returns false
// if that is impossible, or if this process already runs in such namespaces.
func isolate(t *testing.T) bool {
	if netns.Isolated() {
		return false
	}
	program := *soakProgram
	if program == "" {
		var err error
		if program, err = exectest.Program(); err != nil {
			t.Fatal(err)
		}
	}
	err := netns.Isolate(t, `
		echo 1 > /proc/sys/net/ipv4/ip_forward
		ip link add name here type veth peer name there
		ip rule add blackhole from 10.0.0.1 to 10.0.0.2
		mount -t tmpfs tmpfs /mnt`, "-soak.program="+program)
	if err != nil {
		t.Logf("no partitions and no full disks: %v", err)
	}
	return err == nil
}

// A network gives each member its own network namespace with one address. The namespace
// of the test is the router that connects them, so the test can always reach each member.
type network struct {
	t     *testing.T
	hosts int
	cuts  []string // rules of the router
}

func newNetwork(t *testing.T) *network {
	netns.IP(t, "link set lo up")
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	return &network{t: t}
}

// add adds a host. The host continues to exist when the processes on it end.
func (n *network) add() *netns.Host {
	n.hosts++
	device, router := fmt.Sprintf("host%d", n.hosts), fmt.Sprintf("10.77.%d.1", n.hosts)
	h := netns.NewHost(n.t, device, fmt.Sprintf("10.77.%d.2", n.hosts), 24)
	netns.IP(n.t, "addr add "+router+"/24 dev "+device)
	h.IP("route add default via " + router)
	return h
}

// cut drops all packets from one host to another, without an error for the sender.
func (n *network) cut(from, to *netns.Host) {
	rule := "blackhole from " + from.Addr + " to " + to.Addr
	n.cuts = append(n.cuts, rule)
	netns.IP(n.t, "rule add "+rule)
}

// heal removes all cuts.
func (n *network) heal() {
	for _, rule := range n.cuts {
		netns.IP(n.t, "rule del "+rule)
	}
	n.cuts = nil
}
