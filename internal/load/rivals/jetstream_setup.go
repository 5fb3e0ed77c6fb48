package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// natsHello is what a client says first. Without verbose the server answers
// requests only, with headers and no_responders it says when one cannot be.
const natsHello = `CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true,` +
	`"protocol":1,"lang":"go","version":"0","name":"rivals"}` + "\r\n"

// natsGreet takes a new connection through the greeting and subscribes. It reads
// no byte more than that.
func natsGreet(nc net.Conn, subscribe []byte) error {
	if _, err := nc.Write(append([]byte(natsHello), append(subscribe, "PING\r\n"...)...)); err != nil {
		return err
	}
	for {
		line, err := natsLine(nc)
		switch {
		case err != nil:
			return fmt.Errorf("greeting: %w", err)
		case line == "PONG":
			return nil
		case !strings.HasPrefix(line, "INFO "):
			return fmt.Errorf("greeting: unexpected %s", quoted([]byte(line)))
		}
	}
}

// natsLine reads a line byte by byte, so that nothing behind it is lost.
func natsLine(r io.Reader) (string, error) {
	var line []byte
	for b := make([]byte, 1); ; line = append(line, b[0]) {
		if _, err := io.ReadFull(r, b); err != nil {
			return "", err
		}
		if b[0] == '\n' {
			return strings.TrimSuffix(string(line), "\r"), nil
		}
	}
}

// natsPrepare makes the stream, kept in "memory" or "file", and its consumer.
// The limits on what may be under way are lifted; the other servers have none.
func natsPrepare(nc net.Conn, storage string) error {
	const inbox = "_INBOX.setup"
	if err := natsGreet(nc, []byte("SUB "+inbox+" 1\r\n")); err != nil {
		return err
	}
	r := bufio.NewReader(nc)
	ask := func(subject string, request any) error {
		body, err := json.Marshal(request)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(nc, "PUB $JS.API.%s %s %d\r\n%s\r\n", subject, inbox, len(body), body); err != nil {
			return err
		}
		if err := natsAccepted(r); err != nil {
			return fmt.Errorf("%s: %w", subject, err)
		}
		return nil
	}
	type object = map[string]any
	if err := ask("STREAM.CREATE."+natsStream, object{
		"name": natsStream, "subjects": []string{natsSubject}, "retention": "workqueue",
		"storage": storage, "num_replicas": 1, "discard": "old",
		"max_consumers": -1, "max_msgs": -1, "max_bytes": -1, "max_age": 0,
	}); err != nil {
		return err
	}
	return ask("CONSUMER.DURABLE.CREATE."+natsStream+"."+natsConsumer, object{
		"stream_name": natsStream,
		"config": object{
			"durable_name": natsConsumer, "deliver_policy": "all", "replay_policy": "instant",
			"ack_policy": "explicit", "ack_wait": int64(putTTR) * 1e9, "max_deliver": -1,
			"max_ack_pending": -1, "max_waiting": 1 << 16,
		},
	})
}

// natsAccepted reads the answer of the API to a request. An INFO may come
// before it: newer servers send another one after the greeting.
func natsAccepted(r *bufio.Reader) error {
	line, err := r.ReadString('\n')
	for err == nil && strings.HasPrefix(line, "INFO ") {
		line, err = r.ReadString('\n')
	}
	if err != nil {
		return err
	}
	fields := strings.Fields(line)
	if len(fields) < 4 || fields[0] != "MSG" {
		return fmt.Errorf("unexpected %s", quoted([]byte(line)))
	}
	size, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil {
		return err
	}
	payload := make([]byte, size+len(crlf))
	if _, err := io.ReadFull(r, payload); err != nil {
		return err
	}
	var answer struct {
		Error *struct {
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(payload[:size], &answer); err != nil {
		return err
	}
	if answer.Error != nil {
		return fmt.Errorf("refused: %s", answer.Error.Description)
	}
	return nil
}
