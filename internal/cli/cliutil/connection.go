package cliutil

import (
	"cmp"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/certs"
)

// A Connection is the options that say where the server is, and who asks.
type Connection struct {
	Addr       string
	Token      string
	TokenFile  string
	TokenInPut bool
	Timeout    time.Duration
	TLS        bool         // also without what Certs says
	Certs      certs.Client // and the name that the server's certificate must have

	Reconnect time.Duration // maximum time to look for a lost server; zero means electionTime

	url client.Options // what Addr said beside the address, when it was a URL
}

// ServerTitle is the title under which the help shows the options that say where the
// server is.
const ServerTitle = "Server"

// electionTime is long enough to connect again after a change of a cluster's leader, when
// all members disconnect their clients. Members hold a new connection for up to 10 s, until
// there is a leader.
const electionTime = 3 * time.Second

// Define adds the options.
func (o *Connection) Define(flags *pflag.FlagSet) {
	AddFlags(flags, ServerTitle, func(fs *pflag.FlagSet) {
		fs.StringVarP(&o.Addr, "addr", "a", cmp.Or(os.Getenv("BEANPOLE_ADDR"), "127.0.0.1:11300"), "`ADDR` of the server: HOST:PORT, unix:PATH or\nbeanpole://TOKEN@HOST:PORT?tls=true; the members of a\ncluster as HOST:PORT,HOST:PORT")
		if shown, _, _ := client.ParseURL(o.Addr); shown != o.Addr { // the help tells no token
			fs.Lookup("addr").DefValue = shown
		}
		fs.StringVar(&o.Token, "token", "", "prove who you are with this `TOKEN`; the variable\nBEANPOLE_TOKEN does not show in the list of processes")
		fs.StringVar(&o.TokenFile, "token-file", "", "read the token from this `FILE`")
		fs.BoolVar(&o.TokenInPut, "token-in-put", false, "send the token as the body of a put, for servers\nthat are set up so")
		DurationVar(fs, &o.Timeout, "server-timeout", "", time.Millisecond, 30*time.Second, "wait so long for the server to answer, a `TIME`\nsuch as 5s")
		fs.BoolVar(&o.TLS, "tls", false, "encrypt the connection")
		fs.StringVar(&o.Certs.CA, "tls-ca", "", "trust the authorities in this `FILE`, not the system's")
		fs.StringVar(&o.Certs.Cert, "tls-cert", "", "show the certificate in this `FILE`")
		fs.StringVar(&o.Certs.Key, "tls-key", "", "whose key is in this `FILE`")
		fs.StringVar(&o.Certs.ServerName, "tls-server-name", "", "the `NAME` that the server's certificate must have")
	})
}

// GivenToken returns the token, or "".
func (o *Connection) GivenToken() string {
	return cmp.Or(o.Token, o.url.Token, os.Getenv("BEANPOLE_TOKEN"))
}

// Proof says how the options prove who asks; "": not at all.
func (o *Connection) Proof() string {
	switch {
	case o.GivenToken() != "":
		return "token"
	case o.Certs.Cert != "":
		return "certificate"
	}
	return ""
}

// Encrypted reports whether the connection is to be that.
func (o *Connection) Encrypted() bool { return o.url.TLS != nil || o.tlsFlags() }

func (o *Connection) tlsFlags() bool { return o.TLS || o.Certs != certs.Client{} }

// ReadToken puts what is in a file in the place of a token that was not given. option is
// the name of the token's.
func ReadToken(token, file *string, option string) error {
	if *file == "" {
		return nil
	}
	if *token != "" {
		return UsageError("--%s and --%[1]s-file exclude each other", option)
	}
	text, err := os.ReadFile(*file)
	if err != nil {
		return UsageError("--%s-file: %w", option, err)
	}
	*token, *file = strings.TrimSpace(string(text)), ""
	if *token == "" {
		return UsageError("--%s-file: there is no token in it", option)
	}
	return nil
}

// Options returns what the client needs. After it, Addr is an address and no URL.
func (o *Connection) Options() (*client.Options, error) {
	if err := ReadToken(&o.Token, &o.TokenFile, "token"); err != nil {
		return nil, err
	}
	addr, of, err := client.ParseURL(o.Addr)
	if err != nil {
		return nil, UsageError("--addr: %w", err)
	}
	if addr != o.Addr {
		o.Addr, o.url = addr, *of
	}
	switch {
	case addr == "":
		return nil, UsageError("--addr is empty: want HOST:PORT, unix:PATH or beanpole://TOKEN@HOST:PORT")
	case o.TokenInPut && o.GivenToken() == "":
		return nil, UsageError("--token-in-put needs a token: --token, --token-file or BEANPOLE_TOKEN")
	case (o.Certs.Cert == "") != (o.Certs.Key == ""):
		return nil, UsageError("--tls-cert and --tls-key need each other")
	case o.tlsFlags() && o.Certs.ServerName == "" && strings.HasPrefix(o.Addr, "unix:"):
		return nil, UsageError("TLS over a unix socket needs --tls-server-name: the name in the server's certificate")
	}
	opt := &client.Options{
		Token:       o.GivenToken(),
		TokenAsPut:  o.TokenInPut,
		DialTimeout: o.Timeout,
		Timeout:     o.Timeout,
		Reconnect:   cmp.Or(o.Reconnect, electionTime),
		TLS:         o.url.TLS,
	}
	if o.tlsFlags() {
		if opt.TLS, err = o.Certs.Config(); err != nil {
			return nil, UsageError("--tls-%w", err) // it begins with ca, or with cert
		}
	}
	return opt, nil
}
