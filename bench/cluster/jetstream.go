package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/beanpole-mq/beanpole/bench"
	"github.com/beanpole-mq/beanpole/bench/load"
	"github.com/beanpole-mq/beanpole/internal/test/freeport"
)

const (
	serveJetStream = "serve-jetstream" // the argument that makes this program a JetStream server
	members        = 3
	stream         = "JOBS"
	subject        = "jobs"
)

// A jetStream contains three JetStream servers, each in its own process.
type jetStream struct {
	servers []*bench.Process
	leader  string // the address of the stream's leader
}

func startJetStream(ctx context.Context, dir string) (*jetStream, error) {
	j := new(jetStream)
	var ports, routes []string // addresses for the other servers
	for range members {
		p, err := freeport.Reserve()
		if err != nil {
			return nil, err
		}
		defer p.Release()
		ports, routes = append(ports, p.String()), append(routes, "nats://127.0.0.1:"+p.String())
	}
	for i, port := range ports {
		s := bench.Server{Command: []string{os.Args[0], serveJetStream, serverName(i), "{port}", port, strings.Join(routes, ","), "{dir}"}}
		started, err := s.Start(ctx, filepath.Join(dir, serverName(i)))
		if err != nil {
			j.stop()
			return nil, err
		}
		j.servers = append(j.servers, started)
	}
	if err := j.create(ctx); err != nil {
		j.stop()
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	return j, nil
}

func serverName(i int) string { return fmt.Sprintf("n%d", i) }

// runJetStream runs a JetStream server. Its arguments are its name, its ports for clients
// and for other servers, the addresses of all servers, and its directory.
func runJetStream(args []string) error {
	clients, err := strconv.Atoi(args[1])
	others, othersErr := strconv.Atoi(args[2])
	if err := errors.Join(err, othersErr); err != nil {
		return err
	}
	s, err := server.NewServer(&server.Options{
		ServerName: args[0], Host: "127.0.0.1", Port: clients, NoLog: true, NoSigs: true,
		JetStream: true, StoreDir: args[4], SyncAlways: true,
		Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: others},
		Routes:  server.RoutesFromStr(args[3]),
	})
	if err != nil {
		return err
	}
	s.Start()
	s.WaitForShutdown()
	return nil
}

// create creates the stream when the servers are connected to each other.
func (j *jetStream) create(ctx context.Context) error {
	nc, err := nats.Connect("nats://"+j.servers[0].Addr, nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	return until(ctx, "the stream has a leader", func() bool {
		s, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: stream, Subjects: []string{subject}, Retention: jetstream.WorkQueuePolicy, Replicas: members})
		if err != nil {
			return false
		}
		info, err := s.Info(ctx)
		for i, p := range j.servers {
			if err == nil && info.Cluster != nil && info.Cluster.Leader == serverName(i) {
				j.leader = "nats://" + p.Addr
			}
		}
		return j.leader != ""
	})
}

func (j *jetStream) stop() {
	for _, s := range j.servers {
		s.Kill()
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
		recorder = load.NewRecorder()
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
	jobs, streamErr := clients[0].Stream(ctx, stream)
	if err = errors.Join(err, streamErr); err == nil {
		err = jobs.Purge(ctx)
	}
	if err != nil {
		return load.Result{}, err
	}
	return load.Result{Commands: commands, Elapsed: elapsed, Throughput: float64(commands) / elapsed.Seconds(), Latency: recorder.Latency()}, nil
}
