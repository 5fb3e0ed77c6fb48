// Package localca implements a certificate authority for tests.
package localca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A CA is a certificate authority for tests.
type CA struct {
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	last int64 // serial number
	File string
}

// New returns a certificate authority, which writes its files to a temporary directory of
// the test.
func New(t testing.TB) *CA {
	t.Helper()
	ca := &CA{t: t, dir: t.TempDir()}
	ca.File, _, ca.cert, ca.key = ca.make("ca", &x509.Certificate{
		Subject:               pkix.Name{CommonName: "test authority"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	})
	return ca
}

// Pool returns a pool that contains the authority, for clients.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return pool
}

// Issue writes a certificate for a common name, localhost and 127.0.0.1, and its key.
// They replace files of the same name. The validity began an hour ago.
func (ca *CA) Issue(name string, notAfter time.Time) (cert, key string) {
	ca.t.Helper()
	cert, key, _, _ = ca.make(name, &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:   time.Now().Add(-time.Hour),
		NotAfter:    notAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	return cert, key
}

// Pair issues a certificate that is valid for an hour, and returns it with its key.
func (ca *CA) Pair(name string) tls.Certificate {
	ca.t.Helper()
	pair, err := tls.LoadX509KeyPair(ca.Issue(name, time.Now().Add(time.Hour)))
	if err != nil {
		ca.t.Fatal(err)
	}
	return pair
}

func (ca *CA) make(name string, template *x509.Certificate) (certFile, keyFile string, cert *x509.Certificate, key *ecdsa.PrivateKey) {
	ca.t.Helper()
	ca.last++
	template.SerialNumber = big.NewInt(ca.last)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		ca.t.Fatal(err)
	}
	parent, signer := ca.cert, ca.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		ca.t.Fatal(err)
	}
	if cert, err = x509.ParseCertificate(der); err != nil {
		ca.t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		ca.t.Fatal(err)
	}
	certFile = ca.write(name+".crt", "CERTIFICATE", der)
	keyFile = ca.write(name+".key", "PRIVATE KEY", keyDER)
	return certFile, keyFile, cert, key
}

func (ca *CA) write(name, kind string, der []byte) string {
	ca.t.Helper()
	path := filepath.Join(ca.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		ca.t.Fatal(err)
	}
	return path
}
