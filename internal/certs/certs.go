// Package certs reloads the TLS configuration of a server when its files change. The
// server uses a renewed certificate starting with the next handshake, without a restart.
//
//	source, err := certs.Load(certs.Files{Cert: "tls.crt", Key: "tls.key"}, logger)
//	listener = tls.NewListener(listener, source.Config())
//
// A new connection checks the files. If they are invalid, the server continues with the
// previous certificate, and logs the error once.
package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Files contains the paths of the files of a TLS configuration, in PEM.
type Files struct {
	Cert     string // the certificate and the intermediate certificates
	Key      string // the certificate's key
	ClientCA string // authorities of clients; if set, clients need a certificate
}

// A Source is a TLS configuration that is reloaded when its files change.
type Source struct {
	files Files
	log   *slog.Logger

	mu struct {
		sync.Mutex
		config *tls.Config
		stamp  stamp // stamp of the files at the last read, successful or not
		failed error // error of the last read, or nil
	}
}

// A stamp identifies the versions of the files. It changes when a file changes.
type stamp [3]struct {
	modified time.Time
	size     int64
}

// Load reads the files. Its error contains the name of the invalid file.
func Load(files Files, log *slog.Logger) (*Source, error) {
	s := &Source{files: files, log: log}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := s.read(s.look()); err != nil {
		return nil, err
	}
	return s, nil
}

// Config returns the configuration for tls.NewListener. It accepts TLS 1.2 and later.
func (s *Source) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return s.current(), nil
		},
	}
}

// An Expiry is the end of a certificate's validity.
type Expiry struct {
	File       string // file that contains the certificate
	Begin, End time.Time
}

// notice is the maximum remaining time at which a certificate counts as expiring soon.
const notice = 14 * 24 * time.Hour

// Soon reports whether the certificate has expired, or expires within two weeks or a
// fifth of its lifetime, whichever is shorter.
func (e Expiry) Soon(now time.Time) bool {
	return e.End.Sub(now) < min(notice, e.End.Sub(e.Begin)/5)
}

// Expiry returns the earliest expiry among the certificate in use and its intermediate
// certificates. Like a new connection, it first checks the files.
func (s *Source) Expiry() Expiry {
	e := Expiry{File: s.files.Cert}
	for _, der := range s.current().Certificates[0].Certificate {
		c, err := x509.ParseCertificate(der)
		if err == nil && (e.End.IsZero() || c.NotAfter.Before(e.End)) {
			e.Begin, e.End = c.NotBefore, c.NotAfter
		}
	}
	return e
}

// read reads the files with stamp st. If they are invalid, the configuration stays
// unchanged. The caller holds mu.
func (s *Source) read(st stamp) error {
	config, err := s.files.read()
	s.mu.stamp, s.mu.failed = st, err
	if err == nil {
		s.mu.config = config
	}
	return err
}

// Failed returns the error of the current files if the source still uses an earlier
// version, and otherwise nil.
func (s *Source) Failed() error {
	s.current()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.failed
}

// current returns the configuration for a new connection.
func (s *Source) current() *tls.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.look(); st != s.mu.stamp {
		if err := s.read(st); err != nil {
			s.log.Error("cannot use the new TLS certificate; keeping the previous one", "err", err)
		} else {
			s.log.Info("the TLS certificate was read again", "file", s.files.Cert)
		}
	}
	return s.mu.config
}

func (s *Source) look() (st stamp) {
	for i, name := range []string{s.files.Cert, s.files.Key, s.files.ClientCA} {
		if info, err := os.Stat(name); err == nil {
			st[i].modified, st[i].size = info.ModTime(), info.Size()
		}
	}
	return st
}

// read reads the files.
func (f Files) read() (*tls.Config, error) {
	if f.Cert == "" || f.Key == "" {
		return nil, errors.New("TLS needs both a certificate and its key")
	}
	cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("TLS certificate %s and key %s: %w", f.Cert, f.Key, err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}}
	if f.ClientCA == "" {
		return c, nil
	}
	if c.ClientCAs, err = authorities(f.ClientCA); err != nil {
		return nil, fmt.Errorf("authorities of clients: %w", err)
	}
	c.ClientAuth = tls.RequireAndVerifyClientCert
	return c, nil
}
