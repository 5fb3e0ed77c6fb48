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

// The purposes of a connection, as ALPN protocols. The number is the version of the
// format.
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

// handshakeTimeout is the time limit for a TCP connection, and for a TLS handshake.
const handshakeTimeout = 5 * time.Second

// serverConfig returns the TLS configuration of a member's listener. Only a joining
// server needs no certificate.
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

// peerOf returns the member at the other end, and the protocol of the connection.
func peerOf(c *directory.Credentials, state tls.ConnectionState) (from uint64, protocol string, err error) {
	protocol = state.NegotiatedProtocol
	switch {
	case !slices.Contains(protocols, protocol):
		return 0, "", errors.New("no known application protocol")
	case protocol == forJoin:
		return 0, protocol, nil
	case len(state.PeerCertificates) == 0:
		return 0, "", errors.New("no certificate presented")
	}
	from, ok := directory.MemberOf(c.Cluster, state.PeerCertificates[0])
	if !ok {
		return 0, "", errors.New("the certificate does not belong to a member of this cluster")
	}
	return from, protocol, nil
}

func pool(ca *x509.Certificate) *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(ca)
	return p
}

// dial connects to the member id. If id is 0, any member of the cluster can answer.
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
		InsecureSkipVerify: true, // #nosec G402 -- VerifyConnection verifies the fingerprint
		VerifyConnection: func(state tls.ConnectionState) error {
			for _, ca := range state.PeerCertificates[1:] {
				if directory.Fingerprint(ca) != fingerprint {
					continue
				}
				_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: pool(ca)})
				return err
			}
			return errors.New("the server at this address does not belong to the token's cluster; make a new token")
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
		return nil, fmt.Errorf("the server at %s is not a cluster member, or has another version", addr)
	}
	return conn, nil
}

// explain adds the usual cause to some handshake errors.
func explain(err error) error {
	if strings.Contains(err.Error(), "no application protocol") {
		return fmt.Errorf("the member at this address has another version: %w", err)
	}
	if _, isAnother := errors.AsType[x509.HostnameError](err); isAnother {
		return fmt.Errorf("%w: %w", cluster.ErrOccupied, err)
	}
	if _, isStrange := errors.AsType[x509.UnknownAuthorityError](err); isStrange {
		return fmt.Errorf("%w, of another cluster: %w", cluster.ErrOccupied, err)
	}
	return err
}

// keepAlive detects connections whose machine has disappeared.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}
