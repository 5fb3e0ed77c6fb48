package transport

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
)

// A host that says nothing for as long as it may keeps no other one out, and is forgotten when it has gone.
func TestSilentHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
			go func() {
				if _, err := r.enter(over, silent); err == nil {
					t.Error("one host has more rooms than it may have")
				}
			}()
		}
		synctest.Wait()
		leave, err := r.enter(t.Context(), member)
		if err != nil {
			t.Fatal(err)
		}
		leave()
		cancel()
		synctest.Wait()
		for _, leave := range leaves {
			leave()
		}
		if leave, err = r.enter(t.Context(), silent); err != nil {
			t.Fatal(err)
		}
		leave()
		if len(r.all) > 0 || len(r.hosts) > 0 {
			t.Errorf("%d rooms are taken by nobody, %d hosts are remembered", len(r.all), len(r.hosts))
		}
	})
}
