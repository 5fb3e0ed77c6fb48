package beanstalkd

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// A task says of no job that it is deleted if the server refuses to delete it.
func TestDeleteRefused(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			go answer(conn)
		}
	}()
	b, err := New(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var shown admin.Task
	in := admin.StartTask{OfTube: admin.OfTube{Tube: "mail"}, Wait: 60, Do: "delete", State: new("ready")}
	if err := b.Do(t.Context(), "POST /tubes/{tube}/tasks", &in, &shown); err != nil {
		t.Fatal(err)
	}
	if shown.Status != "failed" || shown.Found != 1 || shown.Done != 0 {
		t.Errorf("%+v", shown)
	}
}

// answer is a server that has one job and deletes nothing.
func answer(conn net.Conn) {
	defer conn.Close()
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		switch verb, what, _ := strings.Cut(strings.TrimSpace(lines.Text()), " "); verb {
		case "stats-tube":
			text := fmt.Sprintf("---\nname: %q\ncurrent-jobs-ready: 1\n", what)
			fmt.Fprintf(conn, "OK %d\r\n%s\r\n", len(text), text)
		case "use":
			fmt.Fprintf(conn, "USING %s\r\n", what)
		case "peek-ready":
			fmt.Fprint(conn, "FOUND 1 1\r\nx\r\n")
		default:
			fmt.Fprint(conn, "INTERNAL_ERROR\r\n")
		}
	}
}
