package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster"
	"github.com/beanpole-mq/beanpole/internal/cluster/directory"
)

// NoPeers admits no client without a certificate of the cluster.
func TestStrangers(t *testing.T) {
	peers := newPeers(t, 1)
	member := peers[0]
	member.start(t)
	other := directory.NewCA(member.credentials.Cluster, 1) // the same names with another authority
	own := func() *tls.Config {
		return &tls.Config{RootCAs: pool(member.credentials.CA), ServerName: directory.AnyMember(member.credentials.Cluster), NextProtos: []string{forRequest}}
	}
	for name, change := range map[string]func(*tls.Config){
		"no certificate":           func(*tls.Config) {},
		"a certificate of another": func(c *tls.Config) { c.Certificates = []tls.Certificate{other.Certificate} },
		"TLS 1.2": func(c *tls.Config) {
			c.Certificates, c.MaxVersion = []tls.Certificate{member.credentials.Certificate}, tls.VersionTLS12
		},
		"nothing said of what it is for": func(c *tls.Config) {
			c.Certificates, c.NextProtos = []tls.Certificate{member.credentials.Certificate}, nil
		},
		"something unknown that it is for": func(c *tls.Config) {
			c.Certificates, c.NextProtos = []tls.Certificate{member.credentials.Certificate}, []string{"h2"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := own()
			change(c)
			d := tls.Dialer{Config: c}
			conn, err := d.DialContext(t.Context(), "tcp", member.address)
			if err != nil {
				return
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(patience))
			conn.Write(appendFrame(nil, []byte("hello")))
			if reply, err := io.ReadAll(conn); len(reply) > 0 {
				t.Errorf("it is answered %q, %v", reply, err)
			}
		})
	}
	if _, err := dial(t.Context(), other, member.address, 0, forRequest); err == nil {
		t.Error("a member accepts a member of another cluster")
	}
}

// A member that violates the protocol is disconnected, and none of its data reaches Raft.
func TestHostileMembers(t *testing.T) {
	long := binary.BigEndian.AppendUint32(nil, maxSmall+1)
	frame := func(m *raftpb.Message) []byte {
		f, err := appendMessage(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for name, bad := range map[string][]byte{
		"a frame that is too long":        long,
		"bytes that are no message":       appendFrame(nil, []byte("\xff\xff\xff")),
		"a message of another member":     frame(message(raftpb.MsgHeartbeat, 3, 2, nil)),
		"a message to another member":     frame(message(raftpb.MsgHeartbeat, 1, 3, nil)),
		"a proposal":                      frame(message(raftpb.MsgProp, 1, 2, []byte("x"))),
		"a message of a member to itself": frame(message(raftpb.MsgHup, 1, 2, nil)),
		"a write of another member":       frame(message(raftpb.MsgStorageAppendResp, 1, 2, nil)),
	} {
		t.Run(name, func(t *testing.T) {
			peers := newPeers(t, 2)
			peers[1].start(t)
			conn, err := dial(t.Context(), peers[0].credentials, peers[1].address, 2, forMessages)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(patience))
			if err := writeHandshake(conn, handshake{Handshake: &cluster.Handshake{}}); err != nil {
				t.Fatal(err)
			}
			if _, err := readHandshake(conn); err != nil {
				t.Fatal(err)
			}
			conn.Write(bad)
			if _, err := io.Copy(io.Discard, conn); err != nil && err != io.EOF && context.Cause(t.Context()) == nil && !closedByPeer(err) {
				t.Errorf("the connection stays open: %v", err)
			}
			select {
			case m := <-peers[1].steps:
				t.Errorf("Raft gets %v", m)
			default:
			}
		})
	}
}

// closedByPeer reports whether an error is not a timeout.
func closedByPeer(err error) bool {
	timeout, ok := err.(interface{ Timeout() bool })
	return !ok || !timeout.Timeout()
}

// begun is the number of bytes that arrive of a frame.
const begun = 64 << 10

// An announced length allocates no memory before the bytes arrive.
func TestAnnouncedLengthIsNotTrusted(t *testing.T) {
	announced := binary.BigEndian.AppendUint32(nil, maxEntries)
	allocated := testing.AllocsPerRun(10, func() {
		if _, err := readFrame(bytes.NewReader(announced), maxEntries); err != io.ErrUnexpectedEOF {
			t.Fatal(err)
		}
	})
	if allocated > 10 {
		t.Errorf("%v allocations", allocated)
	}
	r := &counting{announced: announced}
	if _, err := readFrame(r, maxEntries); err != io.ErrUnexpectedEOF {
		t.Errorf("an incomplete frame: %v", err)
	}
	if r.largest > 4*begun {
		t.Errorf("asked for %d bytes at once after %d had come", r.largest, begun)
	}
}

// A counting returns the announced bytes and then zeros, in one piece, and records the
// largest read.
type counting struct {
	announced []byte
	given     int
	largest   int
}

func (c *counting) Read(p []byte) (int, error) {
	if len(c.announced) > 0 {
		n := copy(p, c.announced)
		c.announced = c.announced[n:]
		return n, nil
	}
	c.largest = max(c.largest, len(p))
	if c.given >= begun {
		return 0, io.EOF
	}
	n := min(len(p), begun-c.given)
	c.given += n
	return n, nil
}

func FuzzFrame(f *testing.F) {
	m, err := appendMessage(nil, message(raftpb.MsgApp, 1, 2, []byte("data")))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(m)
	f.Add(appendFrame(nil, []byte(`{"handshake":{"starts":1}}`)))
	f.Add([]byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, input []byte) {
		readHandshake(bytes.NewReader(input))
		frame, err := readFrame(bytes.NewReader(input), maxSmall)
		if err != nil {
			return
		}
		if m, err := parseMessage(frame, 1, 2); err == nil && (m.GetFrom() != 1 || m.GetTo() != 2) {
			t.Fatalf("%v", m)
		}
	})
}
