package door

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/test/memnet"
)

// Types and flags of frames, and a setting (RFC 9113).
const (
	frameHeaders   = 1
	frameRST       = 3
	frameSettings  = 4
	framePing      = 6
	endStream      = 1
	endHeaders     = 4
	settingsWindow = 4
)

func frame(kind, flags byte, stream uint32, payload string) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	b = binary.BigEndian.AppendUint32(append(b, flags), stream)
	return string(b) + payload
}

// stopped is what a client sends that reads no byte of any reply: each stream has a window of 0.
func stopped(method byte, flags byte, path string, streams int) string {
	window := string([]byte{0, settingsWindow, 0, 0, 0, 0})
	header := string([]byte{method, 0x86, 0x04, byte(len(path))}) + path + "\x01\x01x" // http, path, authority
	var b strings.Builder
	b.WriteString("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(frameSettings, 0, 0, window))
	for i := range streams {
		b.WriteString(frame(frameHeaders, flags|endHeaders, uint32(2*i+1), header))
	}
	return b.String()
}

const get2, post2 = 0x82, 0x83

// resets returns how many streams the server has ended, by what it has sent until now.
func resets(t *testing.T, nc net.Conn) int {
	nc.SetReadDeadline(time.Now().Add(time.Millisecond))
	sent, _ := io.ReadAll(nc)
	n := 0
	for len(sent) >= 9 {
		length := int(binary.BigEndian.Uint32(sent) >> 8)
		if sent[3] == frameRST {
			n++
		}
		sent = sent[9+length:]
	}
	if len(sent) != 0 {
		t.Errorf("the server has sent half a frame")
	}
	return n
}

// With HTTP/2 a client can stop one reply while its connection goes on. It keeps nobody out,
// and what it has stopped ends after seconds.
func TestStoppedStreams(t *testing.T) {
	const streams, clients = 20, 20
	for name, request := range map[string]string{
		"a large reply":                          stopped(get2, endStream, "/large", streams),
		"a small reply":                          stopped(get2, endStream, "/small", streams),
		"a flushed reply":                        stopped(get2, endStream, "/flushed", streams),
		"a body that does not come, and is read": stopped(post2, 0, "/read", streams),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, Options{Requests: 64})
				var stuck []net.Conn
				for range clients {
					stuck = append(stuck, s.dial(request))
				}
				start := time.Now()
				s.wantStatus(s.dial(get("/probe")), 200)
				s.wantStatus(s.dial(get("/")), 200)
				if waited := time.Since(start); waited != 0 {
					t.Errorf("they were answered after %v", waited)
				}
				time.Sleep(2*stallTimeout + time.Second)
				synctest.Wait()
				for _, nc := range stuck {
					if n := resets(t, nc); n != streams {
						t.Fatalf("%d of %d streams were ended", n, streams)
					}
				}
			})
		})
	}
}

// A connection whose replies are all stopped makes room for another.
func TestStoppedMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, Options{Requests: 2})
		first := s.dial(stopped(get2, endStream, "/large", 1))
		for range s.door.opt.Connections() - 1 {
			time.Sleep(time.Millisecond)
			s.dial("")
		}
		s.wantStatus(s.dial(get("/")), 200)
		if _, err := io.ReadAll(first); err != nil {
			t.Errorf("the connection was ended by %v", err)
		}
	})
}

// Requests count, and keep their connection, though it waits for the client to read what the server
// has to say besides.
func TestServedUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, Options{Requests: 2})
		pings := strings.Repeat(frame(framePing, 0, 0, "12345678"), memnet.Buffer/17+100) // each is answered by 17 bytes
		served := s.dial(stopped(get2, endStream, "/long", 2) + pings)
		time.Sleep(time.Millisecond)
		s.wantStatus(s.dial(get("/")), 503)
		for range s.door.opt.Connections() {
			s.dial("")
		}
		if closed(served) {
			t.Error("a connection was closed that is being served")
		}
		for range 2 {
			s.answer <- struct{}{}
		}
	})
}

// client2 returns a client that speaks HTTP/2 over a connection of its own.
func (s *site) client2() *http.Client {
	transport := &http.Transport{
		Protocols:   new(http.Protocols),
		DialContext: func(context.Context, string, string) (net.Conn, error) { return s.network.Dial() },
	}
	transport.Protocols.SetUnencryptedHTTP2(true)
	s.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// Events go on for longer than any part of a reply may take, and a large reply comes whole.
func TestStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, Options{Requests: 4})
		client := s.client2()
		for path, want := range map[string]string{"/events": strings.Repeat("event\n", 100), "/large": large} {
			res, err := client.Get("http://x" + path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(res.Body)
			if err != nil || res.ProtoMajor != 2 || string(got) != want {
				t.Errorf("%s by %s: %d bytes, want %d: %v", path, res.Proto, len(got), len(want), err)
			}
		}
	})
}

// One machine has no more requests at once by HTTP/2 than it could have connections.
func TestMachineStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := netip.MustParseAddr("192.0.2.1")
		s := newSite(t, Options{Requests: 64, Machine: func(net.Addr) netip.Addr { return next }})
		share := s.door.opt.share()
		statuses := make(chan int, 2*share)
		for range 2 {
			client := s.client2()
			if res, err := client.Get("http://x/"); err != nil { // so that it has a connection, or it would make one for each request
				t.Fatal(err)
			} else {
				res.Body.Close()
			}
			for range share {
				go func() {
					res, err := client.Get("http://x/long")
					if err != nil {
						t.Error(err)
						statuses <- 0
						return
					}
					res.Body.Close()
					statuses <- res.StatusCode
				}()
			}
			synctest.Wait()
		}
		next = netip.MustParseAddr("192.0.2.2")
		s.wantStatus(s.dial(get("/")), 200)
		if n := len(s.begun); n != share {
			t.Errorf("%d requests of one machine are being served, want %d", n, share)
		}
		for range share {
			s.answer <- struct{}{}
		}
		var got []int
		for range 2 * share {
			got = append(got, <-statuses)
		}
		slices.Sort(got)
		if want := append(slices.Repeat([]int{200}, share), slices.Repeat([]int{503}, share)...); !slices.Equal(got, want) {
			t.Errorf("the replies are %v", got)
		}
	})
}
