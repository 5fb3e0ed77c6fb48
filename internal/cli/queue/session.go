package queue

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/client"
)

// A session is what a command works with.
type session struct {
	server serverOptions
	json   bool

	in      io.Reader
	out     *bufio.Writer // flushed when the command ends
	printed bool          // a job was, so the next comes below a blank line
	err     io.Writer
}

// serverOptions say where the server is, and who asks.
type serverOptions struct {
	addr       string
	url        client.Options // what addr said beside the address, when it was a URL
	token      string
	tokenFile  string
	tokenInPut bool
	timeout    time.Duration
	reconnect  time.Duration // for how long a lost server is looked for; 0: a person would rather know

	tls        bool
	ca         string
	cert, key  string
	serverName string
}

// A Target is where a server is, and who asks: the options of all commands, for one of
// another package.
type Target struct{ server serverOptions }

// Define adds the options.
func (t *Target) Define(fs *pflag.FlagSet) { t.server.define(fs) }

// Options returns what was given: the address, and what a client needs besides.
func (t *Target) Options() (addr string, opt *client.Options, err error) {
	opt, err = t.server.options()
	return t.server.addr, opt, err
}

// ServerTitle is the title under which the help shows the options that say where the
// server is.
const ServerTitle = "Server"

// define adds the options.
func (o *serverOptions) define(fs *pflag.FlagSet) {
	defer fs.VisitAll(func(f *pflag.Flag) { f.Annotations = map[string][]string{"group": {ServerTitle}} })
	fs.StringVarP(&o.addr, "addr", "a", cmp.Or(os.Getenv("BEANPOLE_ADDR"), "127.0.0.1:11300"), "`ADDR` of the server: HOST:PORT, unix:PATH or\nbeanpole://TOKEN@HOST:PORT?tls=true")
	if shown, _, _ := client.ParseURL(o.addr); shown != o.addr { // the help tells no token
		fs.Lookup("addr").DefValue = shown
	}
	fs.StringVar(&o.token, "token", "", "prove who you are with this `TOKEN`; the variable\nBEANPOLE_TOKEN does not show in the list of processes")
	fs.StringVar(&o.tokenFile, "token-file", "", "read the token from this `FILE`")
	fs.BoolVar(&o.tokenInPut, "token-in-put", false, "send the token as the body of a put, for servers\nthat are set up so")
	durationVar(fs, &o.timeout, "server-timeout", "", time.Millisecond, 30*time.Second, "wait so long for the server to answer, a `TIME`\nsuch as 5s")
	fs.BoolVar(&o.tls, "tls", false, "encrypt the connection")
	fs.StringVar(&o.ca, "tls-ca", "", "trust the authorities in this `FILE`, not the system's")
	fs.StringVar(&o.cert, "tls-cert", "", "show the certificate in this `FILE`")
	fs.StringVar(&o.key, "tls-key", "", "whose key is in this `FILE`")
	fs.StringVar(&o.serverName, "tls-server-name", "", "the `NAME` that the server's certificate must have")
}

// givenToken returns the token, or "".
func (o *serverOptions) givenToken() string {
	return cmp.Or(o.token, o.url.Token, os.Getenv("BEANPOLE_TOKEN"))
}

// readToken puts what is in a file in the place of a token that was not given. option is
// the name of the token's.
func readToken(token, file *string, option string) error {
	if *file == "" {
		return nil
	}
	if *token != "" {
		return usageError("--%s and --%[1]s-file exclude each other", option)
	}
	text, err := os.ReadFile(*file)
	if err != nil {
		return usageError("--%s-file: %w", option, err)
	}
	*token, *file = strings.TrimSpace(string(text)), ""
	if *token == "" {
		return usageError("--%s-file: there is no token in it", option)
	}
	return nil
}

// encrypted reports whether the connection is to be that.
func (o *serverOptions) encrypted() bool { return o.url.TLS != nil || o.tlsFlags() }

func (o *serverOptions) tlsFlags() bool {
	return o.tls || o.ca != "" || o.cert != "" || o.key != "" || o.serverName != ""
}

// options returns what the client needs.
func (o *serverOptions) options() (*client.Options, error) {
	if err := readToken(&o.token, &o.tokenFile, "token"); err != nil {
		return nil, err
	}
	addr, of, err := client.ParseURL(o.addr)
	if err != nil {
		return nil, usageError("--addr: %w", err)
	}
	if addr != o.addr {
		o.addr, o.url = addr, *of
	}
	switch {
	case addr == "":
		return nil, usageError("--addr is empty: want HOST:PORT, unix:PATH or beanpole://TOKEN@HOST:PORT")
	case o.tokenInPut && o.givenToken() == "":
		return nil, usageError("--token-in-put needs a token: --token, --token-file or BEANPOLE_TOKEN")
	case (o.cert == "") != (o.key == ""):
		return nil, usageError("--tls-cert and --tls-key need each other")
	case o.tlsFlags() && o.serverName == "" && strings.HasPrefix(o.addr, "unix:"):
		return nil, usageError("TLS over a unix socket needs --tls-server-name: the name in the server's certificate")
	}
	opt := &client.Options{
		Token:       o.givenToken(),
		TokenAsPut:  o.tokenInPut,
		DialTimeout: o.timeout,
		Timeout:     o.timeout,
		Reconnect:   cmp.Or(o.reconnect, client.Never),
	}
	if !o.tlsFlags() {
		opt.TLS = o.url.TLS
		return opt, nil
	}
	opt.TLS = &tls.Config{ServerName: o.serverName}
	if o.ca != "" {
		pem, err := os.ReadFile(o.ca)
		if err != nil {
			return nil, usageError("--tls-ca: %w", err)
		}
		opt.TLS.RootCAs = x509.NewCertPool()
		if !opt.TLS.RootCAs.AppendCertsFromPEM(pem) {
			return nil, usageError("--tls-ca: there is no certificate in %s", o.ca)
		}
	}
	if o.cert != "" {
		pair, err := tls.LoadX509KeyPair(o.cert, o.key)
		if err != nil {
			return nil, usageError("--tls-cert and --tls-key: %w", err)
		}
		opt.TLS.Certificates = []tls.Certificate{pair}
	}
	return opt, nil
}

// dial connects to the server.
func (s *session) dial(ctx context.Context) (*client.Conn, error) {
	opt, err := s.server.options()
	if err != nil {
		return nil, err
	}
	c, err := client.Dial(ctx, s.server.addr, opt)
	return c, nobodyThere(s.server.addr, "--addr or BEANPOLE_ADDR", err)
}

// dialTube connects to the server and looks whether it has a tube: many commands would
// make one that is not there.
func (s *session) dialTube(ctx context.Context, tube string) (*client.Conn, *client.TubeStats, error) {
	c, err := s.dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	st, err := c.StatsTube(ctx, tube)
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	return c, st, nil
}

// A runner is what a command does.
type runner func(ctx context.Context, s *session, args []string) error

// newCommand returns a command that needs a server, and can print JSON. args are what it
// takes besides options, by name: "ID..." is one or more, "[ID]" may be missing.
func newCommand(name, args, short string, run runner) *cobra.Command {
	s := &session{}
	cmd := s.command(name, args, short, run)
	cmd.Flags().BoolVar(&s.json, "json", false, "print JSON")
	return cmd
}

// command is newCommand for one that cannot print JSON.
func (s *session) command(name, args, short string, run runner) *cobra.Command {
	cmd := &cobra.Command{
		Use:                   strings.TrimSpace(name + " [options] " + args),
		Short:                 short,
		DisableFlagsInUseLine: true,
		Args:                  argumentsFor(args),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop) // a second signal ends the program at once
			s.in, s.out, s.err = &input{ctx: ctx, from: cmd.InOrStdin()}, bufio.NewWriter(cmd.OutOrStdout()), cmd.ErrOrStderr()
			return s.exit(ctx, cmp.Or(run(ctx, s, args), s.out.Flush()))
		},
	}
	s.server.define(cmd.Flags())
	cmd.Flags().SortFlags = false
	return cmd
}

// argumentsFor returns the check of a command's arguments.
func argumentsFor(names string) cobra.PositionalArgs {
	least, most := 0, 0
	for name := range strings.FieldsSeq(names) {
		if !strings.HasPrefix(name, "[") {
			least++
		}
		most++
		if strings.HasSuffix(strings.Trim(name, "[]"), "...") {
			most = 1 << 30
		}
	}
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usageError("%s needs %s (see: %s --help)", cmd.Name(), names, cmd.CommandPath())
		case len(args) > most:
			return usageError("unknown argument %q (see: %s --help)", args[most], cmd.CommandPath())
		}
		return nil
	}
}

// printJSON prints a value as JSON, on one line.
func (s *session) printJSON(v any) error {
	e := json.NewEncoder(s.out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// did says to how many jobs or others a command has done something.
func (s *session) did(what string, n int) error {
	if s.json {
		return s.printJSON(map[string]int{what: n})
	}
	_, err := fmt.Fprintln(s.out, what, n)
	return err
}

// note tells a person something that is not the result.
func (s *session) note(format string, args ...any) {
	fmt.Fprintf(s.err, "beanpole: "+format+"\n", args...)
}

// noteTerminal tells a person why nothing happens while standard input is read.
func (s *session) noteTerminal() {
	if term.IsTerminal(os.Stdin.Fd()) {
		s.note("reading from the terminal until control-D")
	}
}
