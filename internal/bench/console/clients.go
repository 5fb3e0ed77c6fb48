package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// fill puts jobs into tubes, in turn.
func fill(addr string, tubes, jobs int) error {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer nc.Close()
	replies := bufio.NewReader(nc)
	each := jobs / tubes
	for tube := range tubes {
		commands := fmt.Sprintf("use tenant-%d\r\n", tube)
		for i := range each {
			body := fmt.Sprintf(`{"job":"App\\Jobs\\SendMail","queue":"tenant-%d","data":{"to":"user%d@example.com","template":"welcome","locale":"en"},"attempts":0,"n":%d,"padding":"%s"}`,
				tube, i, tube*each+i, strings.Repeat("x", 60))
			commands += fmt.Sprintf("put %d 0 60 %d\r\n%s\r\n", 1000+i%3, len(body), body)
		}
		if _, err := io.WriteString(nc, commands); err != nil {
			return err
		}
		for range each + 1 {
			if _, err := replies.ReadSlice('\n'); err != nil {
				return err
			}
		}
	}
	return nil
}

const (
	clients = 8

	// pace is how often a client would give a command, if it did not have to wait: a standstill
	// weighs as much as it lasts.
	pace = time.Millisecond
)

// observe lets clients put, reserve and delete jobs in tubes of their own until stop is called,
// which returns how long their commands took, in µs.
func observe(addr string) (stop func() *hdrhistogram.Histogram) {
	var over atomic.Bool
	var group sync.WaitGroup
	all := make([]*hdrhistogram.Histogram, clients)
	for i := range all {
		all[i] = newHistogram()
		group.Go(func() { use(addr, fmt.Sprintf("client-%d", i), all[i], &over) })
	}
	return sync.OnceValue(func() *hdrhistogram.Histogram {
		over.Store(true)
		group.Wait()
		for _, h := range all[1:] {
			all[0].Merge(h)
		}
		return all[0]
	})
}

// use is one client. It ends early if the server does.
func use(addr, tube string, h *hdrhistogram.Histogram, over *atomic.Bool) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer nc.Close()
	replies := bufio.NewReader(nc)
	say := func(command string, lines int) (first string, err error) {
		began := time.Now()
		if _, err := io.WriteString(nc, command+"\r\n"); err != nil {
			return "", err
		}
		for i := range lines {
			line, err := replies.ReadString('\n')
			if err != nil {
				return "", err
			}
			if i == 0 {
				first = line
			}
		}
		took := time.Since(began)
		h.RecordCorrectedValue(took.Microseconds(), pace.Microseconds())
		time.Sleep(pace - took)
		return first, nil
	}
	if _, err := say("use "+tube, 1); err != nil {
		return
	}
	if _, err := say("watch "+tube, 1); err != nil {
		return
	}
	if _, err := say("ignore default", 1); err != nil {
		return
	}
	for !over.Load() {
		inserted, err := say("put 0 0 60 5\r\nhello", 1)
		if err != nil {
			return
		}
		if _, err = say("reserve", 2); err != nil {
			return
		}
		if _, err = say("delete "+strings.Fields(inserted)[1], 1); err != nil {
			return
		}
	}
}
