package cliutil

import (
	"cmp"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/certs"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/flags"
)

// A Connection contains the options for the connection to a server.
type Connection struct {
	Addr      string
	Token     string
	TokenFile string
	Timeout   time.Duration
	TLS       bool         // whether to use TLS; Certs implies it
	Certs     certs.Client // includes the name that the server's certificate must have

	Reconnect time.Duration // maximum time to search for a lost server; zero means electionTime

	url  client.Options // the other parts of Addr if it was a URL
	addr *pflag.Flag
}

// ServerTitle is the title of the options for the connection to a server.
const ServerTitle = "Server"

// electionTime is long enough for a new connection after a change of a cluster's leader.
// Members keep a new connection waiting for up to 10 s, until there is a leader.
const electionTime = 3 * time.Second

// Define adds the options.
func (o *Connection) Define(set *pflag.FlagSet) {
	flags.AddGroup(set, ServerTitle, func(fs *pflag.FlagSet) {
		fs.StringVarP(&o.Addr, "addr", "a", cmp.Or(os.Getenv("BEANPOLE_ADDR"), "127.0.0.1:11300"), "connect to `ADDR`: HOST:PORT, unix:PATH,\nbeanpole://TOKEN@HOST:PORT?tls=true, or the members of a\ncluster as HOST:PORT,HOST:PORT")
		o.addr = fs.Lookup("addr")
		if shown, _, _ := client.ParseURL(o.Addr); shown != o.Addr { // the help must not contain a token
			o.addr.DefValue = shown
		}
		fs.StringVar(&o.Token, "token", "", "authenticate with `TOKEN`; the process list shows it,\nunlike the variable BEANPOLE_TOKEN")
		fs.StringVar(&o.TokenFile, "token-file", "", "read the token from `FILE`")
		DurationVar(fs, &o.Timeout, "server-timeout", "", time.Millisecond, 30*time.Second, "maximum `TIME` to wait for the server, such as 5s")
		fs.BoolVar(&o.TLS, "tls", false, "use TLS")
		fs.StringVar(&o.Certs.CA, "tls-ca", "", "trust the authorities in `FILE` instead of the system's")
		fs.StringVar(&o.Certs.Cert, "tls-cert", "", "present the certificate in `FILE`")
		fs.StringVar(&o.Certs.Key, "tls-key", "", "read the key of the certificate from `FILE`")
		fs.StringVar(&o.Certs.ServerName, "tls-server-name", "", "require `NAME` in the server's certificate")
	})
}

// GivenToken returns the token, or "".
func (o *Connection) GivenToken() string {
	return cmp.Or(o.Token, o.url.Token, os.Getenv("BEANPOLE_TOKEN"))
}

// Encrypted reports whether the connection uses TLS.
func (o *Connection) Encrypted() bool { return o.url.TLS != nil || o.tlsFlags() }

func (o *Connection) tlsFlags() bool { return o.TLS || o.Certs != certs.Client{} }

// readToken reads Token from TokenFile if that is given.
func (o *Connection) readToken() error {
	if o.TokenFile == "" {
		return nil
	}
	if o.Token != "" {
		return exit.UsageError("--token and --token-file cannot be used together")
	}
	text, err := os.ReadFile(o.TokenFile)
	if err != nil {
		return exit.UsageError("--token-file: %w", err)
	}
	o.Token, o.TokenFile = strings.TrimSpace(string(text)), ""
	if o.Token == "" {
		return exit.UsageError("--token-file: the file is empty")
	}
	return nil
}

// Options returns the options of the client. It replaces a URL in Addr with the URL's
// address.
func (o *Connection) Options() (*client.Options, error) {
	if err := o.readToken(); err != nil {
		return nil, err
	}
	addr, of, err := client.ParseURL(o.Addr)
	if err != nil {
		return nil, exit.UsageError("--addr: %w", err)
	}
	if addr != o.Addr {
		o.Addr, o.url = addr, *of
	}
	switch {
	case addr == "":
		return nil, exit.UsageError("--addr is empty: want HOST:PORT, unix:PATH or beanpole://TOKEN@HOST:PORT")
	case (o.Certs.Cert == "") != (o.Certs.Key == ""):
		return nil, exit.UsageError("--tls-cert and --tls-key require each other")
	case o.tlsFlags() && o.Certs.ServerName == "" && strings.HasPrefix(o.Addr, "unix:"):
		return nil, exit.UsageError("TLS over a Unix socket requires --tls-server-name, the name in the server's certificate")
	}
	opt := &client.Options{
		Token:       o.GivenToken(),
		DialTimeout: o.Timeout,
		Timeout:     o.Timeout,
		Reconnect:   cmp.Or(o.Reconnect, electionTime),
		TLS:         o.url.TLS,
	}
	if o.tlsFlags() {
		if opt.TLS, err = o.Certs.Config(); err != nil {
			return nil, exit.UsageError("--tls-%w", err) // the text starts with ca or cert
		}
	}
	return opt, nil
}
