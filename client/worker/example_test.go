package worker_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/beanpoletest"
	"github.com/beanpole-mq/beanpole/client/worker"
)

// startExample starts a server with the given jobs in the tube mail.
func startExample(bodies ...string) *beanpoletest.Server {
	srv, err := beanpoletest.Start()
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.Dial(context.Background(), srv.Addr, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for _, body := range bodies {
		if _, err := c.Put(context.Background(), client.NewJob{Tube: "mail", Body: []byte(body)}); err != nil {
			log.Fatal(err)
		}
	}
	return srv
}

func Example() {
	srv := startExample("to Ann", "to Bob", "the end")
	defer srv.Close()

	ctx, stop := context.WithCancel(context.Background()) // or signal.NotifyContext
	w, err := worker.New(func(ctx context.Context, job *worker.Job) error {
		if string(job.Body) == "the end" {
			stop()
			return nil
		}
		fmt.Printf("mail %s\n", job.Body)
		return nil
	}, &worker.Options{
		Servers: []string{srv.Addr},
		Tubes:   []string{"mail"},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// mail to Ann
	// mail to Bob
}

// A job whose body cannot be decoded is buried without a call of the handler.
func ExampleJSON() {
	srv := startExample(`{"to": "Ann"}`, `to Bob`)
	defer srv.Close()

	type mail struct{ To string }
	ctx, stop := context.WithCancel(context.Background())
	left := 2
	w, err := worker.New(worker.JSON(func(_ context.Context, _ *worker.Job, m mail) error {
		fmt.Println("mail to", m.To)
		return nil
	}), &worker.Options{
		Servers: []string{srv.Addr},
		Tubes:   []string{"mail"},
		Logger:  slog.New(slog.DiscardHandler),
		Hooks: worker.Hooks{Finish: func(_ context.Context, job *worker.Job, o worker.Outcome) {
			fmt.Println(job.ID, o.Action)
			if left--; left == 0 {
				stop()
			}
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// mail to Ann
	// 1 deleted
	// 2 buried
}
