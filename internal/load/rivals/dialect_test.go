package main

import (
	"fmt"
	"strings"
	"testing"
)

// An exchange is what a dialect sends in a step and what the server answers.
type exchange struct {
	step     step
	out, in  string
	wantBody string
}

const testBody = "0000000000000001xx"

// transcripts are a job from put to finish, in slot 1 of 2.
var transcripts = map[string][]exchange{
	"beanstalk": {
		{put, "put 1024 0 3600 18\r\n" + testBody + "\r\n", "INSERTED 7\r\n", ""},
		{take, "reserve\r\n", "RESERVED 7 18\r\n" + testBody + "\r\n", testBody},
		{finish, "delete 7\r\n", "DELETED\r\n", ""},
	},
	"redis": {
		{put, "*3\r\n$5\r\nLPUSH\r\n$5\r\nqueue\r\n$18\r\n" + testBody + "\r\n", ":1\r\n", ""},
		{take, "*5\r\n$5\r\nLMOVE\r\n$5\r\nqueue\r\n$10\r\nprocessing\r\n$5\r\nRIGHT\r\n$5\r\nRIGHT\r\n", "$18\r\n" + testBody + "\r\n", testBody},
		{finish, "*4\r\n$4\r\nLREM\r\n$10\r\nprocessing\r\n$1\r\n1\r\n$18\r\n" + testBody + "\r\n", ":1\r\n", ""},
	},
	"jetstream": {
		{put, "PUB jobs _INBOX.5.1 18\r\n" + testBody + "\r\n", "MSG _INBOX.5.1 2 25\r\n" + `{"stream":"JOBS","seq":1}` + "\r\n", ""},
		{take, "PUB $JS.API.CONSUMER.MSG.NEXT.JOBS.WORKERS _INBOX.5.1 0\r\n\r\n", "MSG jobs 2 $JS.ACK.1 18\r\n" + testBody + "\r\n", testBody},
		{finish, "PUB $JS.ACK.1 _INBOX.5.1 4\r\n+ACK\r\n", "MSG _INBOX.5.1 2 0\r\n\r\n", ""},
	},
}

func newTestDialect(name string) dialect {
	switch name {
	case "beanstalk":
		return newBeanstalk(2)
	case "redis":
		return newRedis(2)
	}
	d, _ := newJetStream(5, 2, len(testBody))
	return d
}

func appendStep(d dialect, dst []byte, slot int, s step) []byte {
	switch s {
	case put:
		return d.appendPut(dst, slot, []byte(testBody))
	case take:
		return d.appendTake(dst, slot)
	}
	return d.appendFinish(dst, slot)
}

// TestTranscripts plays a job with each dialect. However a reply is cut, next
// asks for more until it is whole.
func TestTranscripts(t *testing.T) {
	for name, exchanges := range transcripts {
		t.Run(name, func(t *testing.T) {
			d := newTestDialect(name)
			for _, x := range exchanges {
				if out := string(appendStep(d, nil, 1, x.step)); out != x.out {
					t.Errorf("%s: sent %q, want %q", x.step, out, x.out)
				}
				for cut := range len(x.in) {
					if n, _, err := d.next([]byte(x.in[:cut])); n != 0 || err != nil {
						t.Fatalf("next(%q) = %d, %v; want more", x.in[:cut], n, err)
					}
				}
				n, slot, err := d.next([]byte(x.in + "rest"))
				if n != len(x.in) || slot != 1 || err != nil {
					t.Fatalf("next(%q) = %d, %d, %v", x.in, n, slot, err)
				}
				if body, ok := d.answer(slot, x.step); !ok || string(body) != x.wantBody {
					t.Errorf("%s: answer to %q: %q, %v", x.step, x.in, body, ok)
				}
			}
		})
	}
}

// TestRefusals has replies that must not pass for what was asked for.
func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		dialect string
		step    step
		in      string
	}{
		{"beanstalk", put, "BURIED 7\r\n"},
		{"beanstalk", take, "DEADLINE_SOON\r\n"},
		{"beanstalk", finish, "NOT_FOUND\r\n"},
		{"redis", put, "-OOM command not allowed\r\n"},
		{"redis", take, "$-1\r\n"},
		{"redis", take, "-ERR unknown command\r\n"},
		{"redis", finish, ":0\r\n"},
		{"jetstream", put, "MSG _INBOX.5.1 2 11\r\n" + `{"error":1}` + "\r\n"},
		{"jetstream", put, "HMSG _INBOX.5.1 2 16 16\r\nNATS/1.0 503\r\n\r\n\r\n"},
		{"jetstream", take, "HMSG _INBOX.5.1 2 16 16\r\nNATS/1.0 408\r\n\r\n\r\n"},
		{"jetstream", take, "MSG jobs 2 18\r\n" + testBody + "\r\n"}, // nowhere to acknowledge it
	} {
		d := newTestDialect(test.dialect)
		for _, x := range transcripts[test.dialect] { // up to the step
			appendStep(d, nil, 1, x.step)
			if x.step == test.step {
				break
			}
			n, slot, err := d.next([]byte(x.in))
			if n == 0 || err != nil {
				t.Fatal(n, err)
			}
			d.answer(slot, x.step)
		}
		n, slot, err := d.next([]byte(test.in))
		if n != len(test.in) || slot != 1 || err != nil {
			t.Fatalf("%s: next(%q) = %d, %d, %v", test.dialect, test.in, n, slot, err)
		}
		if _, ok := d.answer(slot, test.step); ok {
			t.Errorf("%s: %q passed for an answer to %s", test.dialect, test.in, test.step)
		}
	}
}

// TestMalformed has bytes after which a connection is of no use.
func TestMalformed(t *testing.T) {
	for name, all := range map[string][]string{
		"beanstalk": {"HELLO\r\n"},
		"redis":     {"\r\n", "$\r\n", "$x\r\n", "*1\r\n", "HELLO\r\n"},
		"jetstream": {"-ERR 'Authorization Violation'\r\n", "MSG\r\n", "MSG jobs 3 0\r\n", "MSG jobs 0 0\r\n", "MSG jobs 1 x\r\n"},
	} {
		for _, in := range all {
			if n, _, err := newTestDialect(name).next([]byte(in)); err == nil {
				t.Errorf("%s: next(%q) = %d without an error", name, in, n)
			}
		}
	}
}

// TestPing: what JetStream says unasked answers nobody, and a PING is answered
// with the next request, once.
func TestPing(t *testing.T) {
	d := newTestDialect("jetstream")
	for _, in := range []string{"INFO {}\r\n", "PING\r\n"} {
		if n, slot, err := d.next([]byte(in)); n != len(in) || slot != nobody || err != nil {
			t.Fatalf("next(%q) = %d, %d, %v", in, n, slot, err)
		}
	}
	out := string(d.appendTake(d.appendTake(nil, 0), 0))
	if !strings.HasPrefix(out, "PONG\r\nPUB ") || strings.Count(out, "PONG") != 1 {
		t.Errorf("sent %q", out)
	}
}

func TestFIFO(t *testing.T) {
	f := newFIFO(3)
	var got []string
	for _, slot := range []int{2, 0, 1, 1, 2, 0, 0} {
		f.push(slot)
		if f.size == 3 {
			got = append(got, fmt.Sprint(f.pop(), f.pop()))
		}
	}
	got = append(got, fmt.Sprint(f.pop(), f.pop()))
	if want := "2 0,1 1,2 0,0 -1"; strings.Join(got, ",") != want {
		t.Errorf("%v, want %s", got, want)
	}
}
