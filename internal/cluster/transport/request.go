package transport

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/beanpole-mq/beanpole/internal/cluster/directory"
)

// requestTimeout is how long a request may take.
const requestTimeout = 30 * time.Second

// The first byte of an answer.
const (
	answered = 0 // the rest is the answer
	failed   = 1 // the rest is a RemoteError, in JSON
)

// ErrUnanswered means that a request was sent and no answer came, so that the member may
// have done what it asks for.
var ErrUnanswered = errors.New("the member has not answered")

// Request asks the member at an address; id 0 is any member of the cluster. An error that
// the member has answered is a RemoteError.
func Request(ctx context.Context, c *directory.Credentials, addr string, id uint64, body []byte) ([]byte, error) {
	conn, err := dial(ctx, c, addr, id, forRequest)
	if err != nil {
		return nil, err
	}
	return ask(ctx, conn, body)
}

// Join asks a member to be admitted, of whose cluster only the fingerprint of the
// authority is known.
func Join(ctx context.Context, addr, fingerprint string, body []byte) ([]byte, error) {
	conn, err := dialPinned(ctx, addr, fingerprint)
	if err != nil {
		return nil, err
	}
	return ask(ctx, conn, body)
}

func ask(ctx context.Context, conn *tls.Conn, body []byte) ([]byte, error) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.NetConn().Close() })()
	conn.SetDeadline(time.Now().Add(requestTimeout))
	_, err := conn.Write(appendFrame(nil, body))
	var reply []byte
	if err == nil {
		reply, err = readFrame(conn, maxSmall)
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%w: it has closed the connection", ErrUnanswered)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnanswered, err)
	case len(reply) == 0:
		return nil, errors.New("the answer is empty")
	case reply[0] == failed:
		var r RemoteError
		if err := json.Unmarshal(reply[1:], &r); err != nil {
			return nil, fmt.Errorf("the answer is an error that cannot be read: %w", err)
		}
		return nil, r
	}
	return reply[1:], nil
}

// answer reads a request of at most so many bytes and answers it.
func (t *Transport) answer(conn *tls.Conn, most int, do func(ctx context.Context, body []byte) ([]byte, error)) error {
	ctx, cancel := context.WithTimeout(t.ctx, requestTimeout)
	defer cancel()
	conn.SetDeadline(time.Now().Add(handshakeTimeout)) // of any server, which may want to join
	body, err := readFrame(conn, most)
	if err != nil {
		return err
	}
	conn.SetDeadline(time.Now().Add(requestTimeout))
	reply := []byte{answered}
	text, err := do(ctx, body)
	switch {
	case err != nil && t.ctx.Err() != nil:
		return err // not the answer: a leader that was removed stops before it hears of that
	case err != nil:
		reply[0] = failed
		if text, err = json.Marshal(remoteError(err)); err != nil {
			return err
		}
	}
	reply = append(reply, text...)
	if _, err := conn.Write(appendFrame(nil, reply)); err != nil {
		return err
	}
	return conn.CloseWrite()
}
