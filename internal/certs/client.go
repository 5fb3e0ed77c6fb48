package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// A Client is the TLS configuration of a client, with PEM files.
type Client struct {
	CA         string // file with authorities to trust; empty means the system's
	Cert, Key  string // files with the certificate to present and its key; empty means none
	ServerName string // name in the server's certificate; empty means the host of the address
}

// Config reads the files. Its errors start with "ca: " or "cert and key: ".
func (c Client) Config() (*tls.Config, error) {
	config := &tls.Config{ServerName: c.ServerName, MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		var err error
		if config.RootCAs, err = authorities(c.CA); err != nil {
			return nil, fmt.Errorf("ca: %w", err)
		}
	}
	if c.Cert != "" || c.Key != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("cert and key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// authorities reads the certificates of authorities from a file.
func authorities(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("no certificate in %s", file)
	}
	return pool, nil
}
