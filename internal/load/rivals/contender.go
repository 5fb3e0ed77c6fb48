package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/internal/load"
)

// A durability is what the reply to a put promises.
type durability string

const (
	inMemory    durability = "memory" // nothing that outlives the process
	everySecond durability = "second" // it is in a log, which is synced about once a second
	always      durability = "always" // it is in a log that was synced before the reply
)

var durabilities = []durability{inMemory, everySecond, always}

func (d durability) String() string {
	return map[durability]string{
		inMemory:    "In memory",
		everySecond: "With a log that is synced once a second",
		always:      "With a sync before each reply",
	}[d]
}

// A connector takes a new connection to where the load begins.
type connector func(nc net.Conn, conn int, shape loadShape) (dialect, error)

// A contender is a server with the options for one durability.
type contender struct {
	name   string
	server load.Server

	// settings says what the command line does not; empty: nothing.
	settings string

	// absent says why it cannot be run; empty: it can.
	absent string

	connect connector

	// prepare, if not nil, is called once after the start, on a connection of its own.
	prepare func(nc net.Conn) error
}

// String is the command, without the folders of files.
func (c *contender) String() string {
	argv := make([]string, len(c.server.Command))
	for i, arg := range c.server.Command {
		if argv[i] = withoutFolder(arg); arg == "" {
			argv[i] = "''"
		}
	}
	s := strings.Join(argv, " ")
	if c.settings != "" {
		s += ", " + c.settings
	}
	return s
}

// programs are the paths or names of the servers' programs.
type programs struct {
	beanstalkd, beanpole, redis, nats string
}

// contenders returns the four with their options for d, beanstalkd first: it is
// what the others are compared with. Files that they need go to dir.
func contenders(d durability, p programs, dir string) ([]*contender, error) {
	nats, err := natsContender(d, p.nats, dir)
	all := []*contender{
		beanstalkContender("beanstalkd", p.beanstalkd, map[durability]string{
			everySecond: "-b {dir} -f 1000", always: "-b {dir} -f 0"}[d]),
		beanstalkContender("beanpole", p.beanpole, map[durability]string{
			everySecond: "-b {dir} -f 1000", always: "-b {dir}"}[d]),
		redisContender(d, p.redis),
		nats,
	}
	for _, c := range all {
		if _, err := exec.LookPath(c.server.Command[0]); err != nil {
			c.absent = "it is not installed"
		}
	}
	return all, err
}

func newContender(name string, argv ...string) *contender {
	return &contender{name: name, server: load.Server{Name: name, Command: argv}}
}

func beanstalkContender(name, program, options string) *contender {
	argv := append([]string{program, "-l", "127.0.0.1", "-p", "{port}"}, strings.Fields(options)...)
	c := newContender(name, argv...)
	c.connect = func(_ net.Conn, _ int, shape loadShape) (dialect, error) {
		return newBeanstalk(shape.InFlight), nil
	}
	return c
}

func redisContender(d durability, program string) *contender {
	argv := []string{program, "--bind", "127.0.0.1", "--port", "{port}", "--dir", "{dir}", "--save", "", "--appendonly"}
	switch d {
	case inMemory:
		argv = append(argv, "no")
	case everySecond:
		argv = append(argv, "yes", "--appendfsync", "everysec")
	case always:
		argv = append(argv, "yes", "--appendfsync", "always")
	}
	c := newContender("Redis", argv...)
	c.connect = func(_ net.Conn, _ int, shape loadShape) (dialect, error) {
		return newRedis(shape.InFlight), nil
	}
	return c
}

// natsContender writes a configuration, because how often to sync is no option
// of the command line, and no setting at all before release 2.10.
func natsContender(d durability, program, dir string) (*contender, error) {
	storage, syncs := "file", map[durability]string{everySecond: "1s", always: "always"}[d]
	if d == inMemory {
		storage = "memory"
	}
	c := newContender("JetStream", program, "-a", "127.0.0.1", "-p", "{port}", "-js", "-sd", "{dir}")
	c.settings = "stream in " + storage
	c.prepare = func(nc net.Conn) error { return natsPrepare(nc, storage) }
	c.connect = func(nc net.Conn, conn int, shape loadShape) (dialect, error) {
		proto, subscribe := newJetStream(conn, shape.InFlight, shape.BodySize)
		return proto, natsGreet(nc, subscribe)
	}
	if syncs == "" {
		return c, nil
	}
	if old := version(program, "-v"); !natsHasSyncInterval(old) {
		c.settings += ", synced every two minutes"
		if d == always {
			c.absent = fmt.Sprintf("%s cannot sync before it answers; 2.10 and later can (see -nats)", old)
		}
		return c, nil
	}
	c.settings += ", sync_interval: " + syncs
	conf := filepath.Join(dir, "nats-"+syncs+".conf")
	c.server.Command = append(c.server.Command, "-c", conf)
	return c, os.WriteFile(conf, []byte("jetstream { sync_interval: "+syncs+" }\n"), 0o600)
}

var natsVersion = regexp.MustCompile(`v(\d+)\.(\d+)\.`)

func natsHasSyncInterval(version string) bool {
	m := natsVersion.FindStringSubmatch(version)
	if m == nil {
		return false
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	return major > 2 || major == 2 && minor >= 10
}

const versionTimeout = 10 * time.Second

// version is the first line that a program says of itself; empty: it does not.
func version(program, flag string) string {
	ctx, cancel := context.WithTimeout(context.Background(), versionTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, flag).Output()
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}

// run starts the server anew, runs one load on it and stops it.
func (c *contender) run(ctx context.Context, shape loadShape) (result, error) {
	p, err := c.server.Start(ctx)
	if err != nil {
		return result{}, err
	}
	defer p.Stop()
	if c.prepare != nil {
		if err := c.prepareOn(ctx, p.Addr); err != nil {
			return result{}, fmt.Errorf("prepare: %w", err)
		}
	}
	res, err := drive(ctx, p, c.connect, shape)
	if err != nil {
		if died := p.Died(); died != nil {
			err = died
		}
	}
	return res, err
}

func (c *contender) prepareOn(ctx context.Context, addr string) error {
	d := net.Dialer{Timeout: dialTimeout}
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer nc.Close()
	if err := nc.SetDeadline(time.Now().Add(dialTimeout)); err != nil {
		return err
	}
	return c.prepare(nc)
}
