package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/beanpoletest"
)

var addr string

// startExample starts the server for an example, and returns the function that stops it.
func startExample() (stop func()) {
	srv, err := beanpoletest.Start()
	if err != nil {
		log.Fatal(err)
	}
	addr = srv.Addr
	return srv.Close
}

// connect starts the server for an example and connects to it. The returned function
// closes the connection and the server.
func connect() (*client.Conn, func()) {
	stop := startExample()
	c, err := client.Dial(context.Background(), addr, nil)
	if err != nil {
		log.Fatal(err)
	}
	return c, func() {
		c.Close()
		stop()
	}
}

func Example() {
	defer startExample()()
	ctx := context.Background()

	c, err := client.Dial(ctx, addr, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	id, err := c.Put(ctx, client.NewJob{Tube: "mail", Body: []byte("hello"), TTR: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("put job", id)

	if err := c.WatchOnly(ctx, "mail"); err != nil {
		log.Fatal(err)
	}
	job, err := c.Reserve(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("got job %d: %s\n", job.ID, job.Body)

	if err := job.Delete(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// put job 1
	// got job 1: hello
}

// This server requires TLS, a client certificate and a token.
func ExampleOptions() {
	pem, err := os.ReadFile("ca.pem")
	if err != nil {
		log.Fatal(err)
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(pem)
	certificate, err := tls.LoadX509KeyPair("client.pem", "client-key.pem")
	if err != nil {
		log.Fatal(err)
	}

	c, err := client.Dial(context.Background(), "queue.example.com:11300", &client.Options{
		TLS:   &tls.Config{RootCAs: authorities, Certificates: []tls.Certificate{certificate}},
		Token: os.Getenv("QUEUE_TOKEN"),
	})
	if errors.Is(err, client.ErrUnauthorized) {
		log.Fatal("the server does not take the token: ", err)
	}
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
}

func ExampleConn_Put() {
	c, end := connect()
	defer end()
	ctx := context.Background()

	id, err := c.Put(ctx, client.NewJob{
		Tube:     "reports",
		Body:     []byte(`{"month": "May"}`),
		Priority: new(uint32(100)), // lower values come first
		Delay:    time.Hour,        // the job is not ready before
		TTR:      5 * time.Minute,  // a worker must touch the job within this time
	})
	switch {
	case errors.Is(err, client.ErrJobTooBig), errors.Is(err, client.ErrDraining):
		log.Fatal("not put: ", err)
	case errors.Is(err, client.ErrOutcomeUnknown):
		log.Fatal("maybe put: ", err)
	case err != nil:
		log.Fatal(err)
	}
	st, err := c.StatsJob(ctx, id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(st.Tube, st.State, st.Priority, st.Delay, st.TTR)
	// Output: reports delayed 100 1h0m0s 5m0s
}

// The put of a job can fail even if other jobs of the batch succeed.
func ExampleBatchError() {
	c, end := connect()
	defer end()
	ctx := context.Background()

	ids, err := c.PutMany(ctx, []client.NewJob{{Body: []byte("small")}, {Body: make([]byte, 100_000)}})
	var batch *client.BatchError
	if errors.As(err, &batch) {
		for i, err := range batch.Errs {
			switch {
			case err == nil:
				fmt.Println("job", i, "has the id", ids[i])
			case errors.Is(err, client.ErrJobTooBig):
				fmt.Println("job", i, "is too big")
			}
		}
	}
	// Output:
	// job 0 has the id 1
	// job 1 is too big
}

// Create a pool once and share it, for example between all handlers of a web server.
func ExamplePool() {
	defer startExample()()
	ctx := context.Background()
	pool, err := client.NewPool(addr, &client.Options{MaxConns: 50})
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()

	done := make(chan error)
	for i := range 100 {
		go func() {
			_, err := pool.Put(ctx, client.NewJob{Tube: "mail", Body: fmt.Append(nil, i)})
			done <- err
		}()
	}
	for range 100 {
		if err := <-done; err != nil {
			log.Fatal(err)
		}
	}
	job, err := pool.Reserve(ctx, "mail", "fax")
	if err != nil {
		log.Fatal(err)
	}
	defer job.Abandon() // has no effect after the job is finished
	if err := job.Delete(ctx); err != nil {
		log.Fatal(err)
	}
	st, err := pool.StatsTube(ctx, "mail")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(st.JobsReady, "are left")
	// Output: 99 are left
}

// The two servers are independent.
func ExampleServers() {
	defer startExample()()
	one := addr
	defer startExample()()
	two := addr
	ctx := context.Background()

	servers, err := client.NewServers([]string{one, two}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer servers.Close()

	// All jobs of a customer go to one server and stay in order.
	a, err := servers.Put(ctx, "customer 7", client.NewJob{Body: []byte("first")})
	if err != nil {
		log.Fatal(err)
	}
	b, err := servers.Put(ctx, "customer 7", client.NewJob{Body: []byte("second")})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("same server:", a.Server == b.Server)

	// Package worker reserves from all servers. This call reserves from one server.
	job, err := servers.Pool(a.Server).Reserve(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s, known as the first: %t\n", job.Body, job.JobID() == a)
	if err := job.Delete(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// same server: true
	// first, known as the first: true
}
