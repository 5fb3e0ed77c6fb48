package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/internal/cluster"
	"github.com/beanpole-mq/beanpole/internal/cluster/directory"
)

// What a connection is for, as ALPN says it. The number is that of the format.
const (
	forMessages = "beanpole-messages/1"
	forEntries  = "beanpole-entries/1"
	forClients  = "beanpole-clients/1"
	forSnapshot = "beanpole-snapshot/1"
	forRequest  = "beanpole-request/1"
	forJoin     = "beanpole-join/1"
	forAdmin    = "beanpole-admin/1"
)

var protocols = []string{forMessages, forEntries, forClients, forSnapshot, forRequest, forJoin, forAdmin}

// handshakeTimeout is how long connecting may take, and a TLS handshake.
const handshakeTimeout = 5 * time.Second

// serverConfig is the configuration of a member's listener. Only a server that joins may
// come without a certificate.
func serverConfig(c *directory.Credentials) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{c.Certificate},
		ClientAuth:             tls.VerifyClientCertIfGiven,
		ClientCAs:              pool(c.CA),
		NextProtos:             protocols,
		SessionTicketsDisabled: true,
	}
}

// peerOf returns the member at the other end, and what the connection is for.
func peerOf(c *directory.Credentials, state tls.ConnectionState) (from uint64, protocol string, err error) {
	protocol = state.NegotiatedProtocol
	switch {
	case !slices.Contains(protocols, protocol):
		return 0, "", errors.New("it does not say what the connection is for")
	case protocol == forJoin:
		return 0, protocol, nil
	case len(state.PeerCertificates) == 0:
		return 0, "", errors.New("it shows no certificate")
	}
	from, ok := directory.MemberOf(c.Cluster, state.PeerCertificates[0])
	if !ok {
		return 0, "", errors.New("its certificate is not that of a member of this cluster")
	}
	return from, protocol, nil
}

func pool(ca *x509.Certificate) *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(ca)
	return p
}

// dial connects to a member; id 0 is any of the cluster.
func dial(ctx context.Context, c *directory.Credentials, addr string, id uint64, protocol string) (*tls.Conn, error) {
	name := directory.AnyMember(c.Cluster)
	if id != 0 {
		name = directory.MemberName(c.Cluster, id)
	}
	return dialConfig(ctx, addr, &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{c.Certificate},
		RootCAs:      pool(c.CA),
		ServerName:   name,
		NextProtos:   []string{protocol},
	})
}

// dialPinned connects to a member of a cluster of which only the fingerprint of its
// authority is known.
func dialPinned(ctx context.Context, addr, fingerprint string) (*tls.Conn, error) {
	return dialConfig(ctx, addr, &tls.Config{
		MinVersion:         tls.VersionTLS13,
		NextProtos:         []string{forJoin},
		InsecureSkipVerify: true, // #nosec G402 -- VerifyConnection does it, by the fingerprint
		VerifyConnection: func(state tls.ConnectionState) error {
			for _, ca := range state.PeerCertificates[1:] {
				if directory.Fingerprint(ca) != fingerprint {
					continue
				}
				_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: pool(ca)})
				return err
			}
			return errors.New("the server there is not of the cluster that the token is for")
		},
	})
}

func dialConfig(ctx context.Context, addr string, config *tls.Config) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	d := tls.Dialer{NetDialer: &net.Dialer{KeepAliveConfig: keepAlive}, Config: config}
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, explain(err)
	}
	conn := nc.(*tls.Conn)
	if got := conn.ConnectionState().NegotiatedProtocol; got != config.NextProtos[0] {
		conn.Close()
		return nil, fmt.Errorf("what answers at %s is not a member of a cluster, or one of another version", addr)
	}
	return conn, nil
}

// explain says what some errors of a handshake mean here.
func explain(err error) error {
	if strings.Contains(err.Error(), "no application protocol") {
		return fmt.Errorf("the member there is of another version: %w", err)
	}
	if _, isAnother := errors.AsType[x509.HostnameError](err); isAnother {
		return fmt.Errorf("%w: %w", cluster.ErrOccupied, err)
	}
	if _, isStrange := errors.AsType[x509.UnknownAuthorityError](err); isStrange {
		return fmt.Errorf("%w, of another cluster: %w", cluster.ErrOccupied, err)
	}
	return err
}

// keepAlive finds connections whose machine has gone.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}
