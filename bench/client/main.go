package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/beanpole-mq/beanpole/bench"
)

var handlerCounts = []int{1, 10, 100}

func main() {
	var programs []string
	flag.Func("server", "measure on this server `PROGRAM`, which takes beanstalkd's flags; may be repeated (beanpole)", func(s string) error {
		programs = append(programs, s)
		return nil
	})
	rounds := flag.Int("rounds", 5, "take the median of so many `ROUNDS`")
	jobs := flag.Int("jobs", 20000, "put and reserve so many `JOBS` a round; in batches, ten times as many")
	flag.Parse()
	if len(programs) == 0 {
		programs = []string{"beanpole"}
	}
	if *rounds < 1 || *jobs < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	for _, program := range programs {
		if err := run(os.Stdout, program, *rounds, *jobs); err != nil {
			log.Fatal(program, ": ", err)
		}
	}
}

// run measures everything on one server program.
func run(w io.Writer, program string, rounds, jobs int) error {
	server := bench.Server{Command: []string{program, "-l", "127.0.0.1", "-p", "{port}"}}
	p, err := server.Start(context.Background(), "")
	if err != nil {
		return err
	}
	defer p.Stop()
	return report(w, server.DisplayName(), p.Addr, rounds, jobs)
}

// report measures everything on one server, and prints it.
func report(w io.Writer, name, addr string, rounds, jobs int) error {
	puts, reserves := make([][]result, len(contenders)), make([][]result, len(contenders))
	works, singles := make([][]result, len(handlerCounts)), make([][]result, len(handlerCounts))
	for range rounds {
		put, reserve, err := round(addr, jobs)
		if err != nil {
			return err
		}
		for i := range contenders {
			puts[i], reserves[i] = append(puts[i], put[i]), append(reserves[i], reserve[i])
		}
		for i, handlers := range handlerCounts {
			for _, of := range []struct {
				results *[]result
				single  bool
			}{{&works[i], false}, {&singles[i], true}} {
				r, err := work(addr, handlers, jobs, of.single)
				if err != nil {
					return fmt.Errorf("worker with %d handlers: %w", handlers, err)
				}
				*of.results = append(*of.results, r)
			}
		}
	}
	fmt.Fprintf(w, "On %s, one connection, %d-byte bodies, medians of %d rounds of %d jobs, %d of each client in turn.\nThe ratio is to go-beanstalk in the same round: its median, smallest and largest. CPU and allocations are the client's, per job.\n\n",
		name, bodySize, rounds, jobs, slice)
	fmt.Fprintln(w, "| | puts/s | ratio | CPU, us | allocations | reserves/s | ratio | CPU, us | allocations |")
	fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|--:|--:|--:|")
	const theirs = 1
	for i, c := range contenders {
		put, reserve := median(puts[i]), median(reserves[i])
		fmt.Fprintf(w, "| %s | %.0f | %s | %.1f | %.1f | %.0f | %s | %.1f | %.1f |\n", c.name,
			put.rate, ratios(puts[i], puts[theirs]), put.cpu, put.allocs,
			reserve.rate, ratios(reserves[i], reserves[theirs]), reserve.cpu, reserve.allocs)
	}
	fmt.Fprint(w, "\nThe worker, with handlers that do nothing: reserved, handled and deleted. Left with batches, where the server knows them; right one job at a time,\n"+
		"by turns. CPU, reads and writes are the worker's, per job.\n\n"+
		"| handlers | jobs/s | ratio | CPU, us | reads and writes | jobs/s | CPU, us | reads and writes |\n|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for i, handlers := range handlerCounts {
		r, single := median(works[i]), median(singles[i])
		fmt.Fprintf(w, "| %d | %.0f | %s | %.1f | %.3f | %.0f | %.1f | %.3f |\n", handlers, r.rate, ratios(works[i], singles[i]), r.cpu, r.calls, single.rate, single.cpu, single.calls)
	}
	_, err := fmt.Fprintln(w)
	return err
}

// median returns the medians of each figure.
func median(rs []result) result {
	pick := func(of func(result) float64) float64 {
		return spread(rs, func(i int) float64 { return of(rs[i]) }).Median
	}
	return result{
		rate:   pick(func(r result) float64 { return r.rate }),
		allocs: pick(func(r result) float64 { return r.allocs }),
		cpu:    pick(func(r result) float64 { return r.cpu }),
		calls:  pick(func(r result) float64 { return r.calls }),
	}
}

// ratios returns the median, the smallest and the largest of the ratios of the
// rates within a round.
func ratios(a, b []result) string {
	return spread(a, func(i int) float64 { return a[i].rate / b[i].rate }).Ratio()
}

// spread sums up a figure of the rounds.
func spread(rounds []result, of func(round int) float64) *bench.Spread {
	values := make([]float64, len(rounds))
	for i := range values {
		values[i] = of(i)
	}
	return bench.NewSpread(values)
}
