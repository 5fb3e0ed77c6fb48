package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/beanpole-mq/beanpole/internal/freeport"
	"github.com/beanpole-mq/beanpole/internal/load"
)

const (
	serveJetStream = "serve-jetstream" // this program with this argument is a JetStream server
	members        = 3
	stream         = "JOBS"
	subject        = "jobs"
)

// A jetStream is three servers, each a process of its own.
type jetStream struct {
	servers []*exec.Cmd
	clients []string // their addresses
	leader  string   // the address of the stream's leader
}

func startJetStream(ctx context.Context, dir string) (*jetStream, error) {
	ports, err := reservePorts(2 * members)
	if err != nil {
		return nil, err
	}
	var routes []string
	for i := range members {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%s", ports[members+i]))
	}
	j := &jetStream{}
	for i := range members {
		config := fmt.Sprintf("server_name: n%d\nlisten: 127.0.0.1:%s\njetstream { store_dir: %q, sync_interval: always }\ncluster { name: c, listen: 127.0.0.1:%s, routes: [%s] }\n",
			i, ports[i], filepath.Join(dir, fmt.Sprint(i)), ports[members+i], strings.Join(routes, ", "))
		cmd := exec.CommandContext(ctx, os.Args[0], serveJetStream)
		cmd.Stdin, cmd.Stderr = strings.NewReader(config), os.Stderr
		if err := cmd.Start(); err != nil {
			j.stop()
			return nil, err
		}
		j.servers = append(j.servers, cmd)
		j.clients = append(j.clients, fmt.Sprintf("nats://127.0.0.1:%s", ports[i]))
	}
	if err := j.create(ctx); err != nil {
		j.stop()
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	return j, nil
}

// reservePorts returns free ports.
func reservePorts(n int) (ports []string, err error) {
	for range n {
		p, err := freeport.Reserve()
		if err != nil {
			return nil, err
		}
		defer p.Release()
		ports = append(ports, p.String())
	}
	return ports, nil
}

// runJetStream is a JetStream server with the configuration that it reads.
func runJetStream(in io.Reader, _ io.Writer) error {
	f, err := os.CreateTemp("", "jetstream-")
	if err != nil {
		return err
	}
	_, err = io.Copy(f, bufio.NewReader(in))
	err = errors.Join(err, f.Close())
	defer os.Remove(f.Name())
	if err != nil {
		return err
	}
	opt, err := server.ProcessConfigFile(f.Name())
	if err != nil {
		return err
	}
	opt.NoLog = true
	s, err := server.NewServer(opt)
	if err != nil {
		return err
	}
	s.Start()
	s.WaitForShutdown()
	return nil
}

// create makes the stream, as soon as the servers have found each other.
func (j *jetStream) create(ctx context.Context) error {
	nc, err := nats.Connect(strings.Join(j.clients, ","), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	for {
		var s jetstream.Stream
		s, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: stream, Subjects: []string{subject}, Retention: jetstream.WorkQueuePolicy, Replicas: members})
		if err == nil {
			info, infoErr := s.Info(ctx)
			if infoErr == nil && info.Cluster != nil && info.Cluster.Leader != "" {
				var i int
				_, err = fmt.Sscanf(info.Cluster.Leader, "n%d", &i)
				j.leader = j.clients[i]
				return err
			}
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (j *jetStream) name() string { return "JetStream, 3 replicas, sync always" }

func (j *jetStream) pids() (pids []int) {
	for _, s := range j.servers {
		pids = append(pids, s.Process.Pid)
	}
	return pids
}

func (j *jetStream) stop() {
	for _, s := range j.servers {
		s.Process.Kill()
		s.Wait()
	}
}

func (j *jetStream) put(ctx context.Context, connections, body int, duration time.Duration) (load.Result, error) {
	clients := make([]jetstream.JetStream, connections)
	for i := range clients {
		nc, err := nats.Connect(j.leader)
		if err != nil {
			return load.Result{}, err
		}
		defer nc.Close()
		if clients[i], err = jetstream.New(nc); err != nil {
			return load.Result{}, err
		}
	}
	var (
		mu       sync.Mutex
		recorder = load.NewRecorder(0)
		commands int64
		puts     errgroup.Group
		job      = make([]byte, body)
		begin    = time.Now()
	)
	for _, js := range clients {
		puts.Go(func() error {
			for time.Since(begin) < duration {
				sent := time.Now()
				if _, err := js.Publish(ctx, subject, job); err != nil {
					return err
				}
				took := time.Since(sent)
				mu.Lock()
				recorder.Record(took)
				commands++
				mu.Unlock()
			}
			return nil
		})
	}
	err := puts.Wait()
	elapsed := time.Since(begin)
	if err := errors.Join(err, j.purge(ctx, clients[0])); err != nil {
		return load.Result{}, err
	}
	return load.Result{Commands: commands, Elapsed: elapsed, Throughput: float64(commands) / elapsed.Seconds(), Latency: recorder.Latency()}, nil
}

// purge removes the jobs.
func (j *jetStream) purge(ctx context.Context, js jetstream.JetStream) error {
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return err
	}
	return s.Purge(ctx)
}
