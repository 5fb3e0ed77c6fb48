package transport

import (
	"context"
	"net"
	"testing"
)

// A host that says nothing for as long as it may keeps no other one out, and is forgotten when it has gone.
func TestSilentHost(t *testing.T) {
	r := newRooms()
	silent, member := &net.TCPAddr{IP: net.ParseIP("2001:db8::1"), Port: 1}, &net.TCPAddr{IP: net.ParseIP("2001:db8:0:1::1"), Port: 1}
	over, cancel := context.WithCancel(t.Context())
	var leaves []func()
	for range maxHandshakesEach {
		leave, err := r.enter(t.Context(), silent)
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leave)
		silent.Port++
		silent.IP[15]++ // another address of its network
	}
	for range maxHandshakes { // these wait, and take no room
		go r.enter(over, silent)
	}
	leave, err := r.enter(t.Context(), member)
	if err != nil {
		t.Fatal(err)
	}
	leave()
	cancel()
	if _, err := r.enter(over, silent); err == nil {
		t.Error("one host has more rooms than it may have")
	}
	for _, leave := range leaves {
		leave()
	}
	if leave, err = r.enter(t.Context(), silent); err != nil {
		t.Fatal(err)
	}
	leave()
	if len(r.all) > 0 {
		t.Errorf("%d rooms are taken by nobody", len(r.all))
	}
}
