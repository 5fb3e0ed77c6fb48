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

// requestTimeout is the time limit for a request.
const requestTimeout = 30 * time.Second

// The first byte of a reply.
const (
	answered = 0 // the reply follows
	failed   = 1 // a RemoteError follows, in JSON
)

// ErrUnanswered means that a request was sent but no reply arrived. The member might have
// executed the request.
var ErrUnanswered = errors.New("no reply from the member")

// Request sends a request to the member id at addr. If id is 0, any member of the cluster
// can answer. An error from the member is a RemoteError.
func Request(ctx context.Context, c *directory.Credentials, addr string, id uint64, body []byte) ([]byte, error) {
	conn, err := dial(ctx, c, addr, id, forRequest)
	if err != nil {
		return nil, err
	}
	return ask(ctx, conn, body)
}

// Join asks the member at addr to admit this server. The server verifies the member by
// the fingerprint of the cluster's authority.
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
		return nil, fmt.Errorf("%w: connection closed", ErrUnanswered)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnanswered, err)
	case len(reply) == 0:
		return nil, errors.New("empty reply")
	case reply[0] == failed:
		var r RemoteError
		if err := json.Unmarshal(reply[1:], &r); err != nil {
			return nil, fmt.Errorf("unreadable error in the reply: %w", err)
		}
		return nil, r
	}
	return reply[1:], nil
}

// answer reads a request of at most most bytes and sends the reply of do.
func (t *Transport) answer(conn *tls.Conn, most int, do func(ctx context.Context, body []byte) ([]byte, error)) error {
	ctx, cancel := context.WithTimeout(t.ctx, requestTimeout)
	defer cancel()
	conn.SetDeadline(time.Now().Add(handshakeTimeout)) // the server might have no certificate
	body, err := readFrame(conn, most)
	if err != nil {
		return err
	}
	conn.SetDeadline(time.Now().Add(requestTimeout))
	reply := []byte{answered}
	text, err := do(ctx, body)
	switch {
	case err != nil && t.ctx.Err() != nil:
		return err // the reply is not logged: a removed leader stops before it is notified of its removal
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
