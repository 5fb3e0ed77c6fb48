package transport

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/beanpole-mq/beanpole/internal/cluster"
)

// The largest frames, in bytes.
const (
	maxJoin    = 4 << 10       // a request to join, from anybody: a token and an address
	maxSmall   = 1 << 20       // a handshake, a request, a message without entries
	maxEntries = 1<<30 + 1<<21 // a message with entries: the largest job, and what is around it
)

// errFrame is wrapped by the errors of frames that are too long.
var errFrame = errors.New("a frame is longer than it may be")

// readFrame reads a frame of at most so many bytes.
func readFrame(r io.Reader, most int) ([]byte, error) {
	var frame bytes.Buffer
	err := readFrameInto(&frame, r, most)
	return frame.Bytes(), err
}

// readFrameInto reads a frame in place of what is in a buffer. That allocates at most
// twice what has arrived.
func readFrameInto(frame *bytes.Buffer, r io.Reader, most int) error {
	frame.Reset()
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	length := int64(binary.BigEndian.Uint32(head[:]))
	if length > int64(most) {
		return fmt.Errorf("%w: %d bytes, at most %d", errFrame, length, most)
	}
	_, err := io.CopyN(frame, r, length)
	return noEOF(err)
}

// noEOF makes the end of the input within a frame an error.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func appendFrame(dst, frame []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(frame)))
	return append(dst, frame...)
}

// appendMessage appends the frame of a message.
func appendMessage(dst []byte, m *raftpb.Message) ([]byte, error) {
	at := len(dst)
	dst, err := proto.MarshalOptions{}.MarshalAppend(append(dst, 0, 0, 0, 0), m)
	if err != nil {
		return dst[:at], err
	}
	length := len(dst) - at - 4
	if length > maxEntries {
		return dst[:at], fmt.Errorf("%w: a message of %d bytes", errFrame, length)
	}
	binary.BigEndian.PutUint32(dst[at:], uint32(length))
	return dst, nil
}

// received are the kinds of messages that members send to each other. All others are of a
// member to itself, or of clients of Raft that are not used here.
var received = []raftpb.MessageType{
	raftpb.MsgApp, raftpb.MsgAppResp, raftpb.MsgVote, raftpb.MsgVoteResp, raftpb.MsgPreVote, raftpb.MsgPreVoteResp, raftpb.MsgSnap,
	raftpb.MsgHeartbeat, raftpb.MsgHeartbeatResp, raftpb.MsgTimeoutNow, raftpb.MsgReadIndex, raftpb.MsgReadIndexResp,
}

// parseMessage reads a message that one member has sent to another.
func parseMessage(frame []byte, from, to uint64) (*raftpb.Message, error) {
	m := new(raftpb.Message)
	if err := proto.Unmarshal(frame, m); err != nil {
		return nil, fmt.Errorf("not a message of Raft: %w", err)
	}
	switch {
	case m.GetFrom() != from || m.GetTo() != to:
		return nil, fmt.Errorf("a message from %d to %d came from %d to %d", m.GetFrom(), m.GetTo(), from, to)
	case !slices.Contains(received, m.GetType()):
		return nil, fmt.Errorf("a message of kind %v is not for other members", m.GetType())
	case slices.Contains(m.GetEntries(), nil):
		return nil, errors.New("a message has an entry that is nil")
	}
	return m, nil
}

// withEntries reports whether a message goes to the connection for entries. All messages
// that replicate do, to keep their order, also those that only say what is committed.
func withEntries(m *raftpb.Message) bool {
	return m.GetType() == raftpb.MsgApp || m.GetType() == raftpb.MsgSnap
}

// A handshake is what both sides of a connection for messages say first, in JSON. An error
// ends the connection.
type handshake struct {
	Handshake *cluster.Handshake `json:"handshake,omitempty"`
	Error     *RemoteError       `json:"error,omitempty"`
}

func writeHandshake(w io.Writer, g handshake) error {
	text, err := json.Marshal(g)
	if err != nil {
		return err
	}
	_, err = w.Write(appendFrame(nil, text))
	return err
}

// A RemoteError is what the other side has said instead of a handshake, or as the error
// that is the answer to a request. For errors.Is it is the error of package cluster that
// its code stands for.
type RemoteError struct {
	Code string `json:"code,omitempty"` // one of codes, or empty
	Text string `json:"text"`
}

// codes are the errors that the other side acts on. They are part of the protocol between
// members.
var codes = map[string]error{
	"removed":     cluster.ErrRemoved,
	"not_member":  cluster.ErrNotMember,
	"rolled_back": cluster.ErrRolledBack,
	"connected":   cluster.ErrConnected,
	"too_old":     cluster.ErrTooOld,
	"not_leader":  cluster.ErrNotLeader,
	"busy":        cluster.ErrBusy,
	"declined":    cluster.ErrDeclined,
	"stopped":     cluster.ErrStopped,
}

// remoteError returns what to say of an error.
func remoteError(err error) *RemoteError {
	for code, known := range codes {
		if errors.Is(err, known) {
			return &RemoteError{code, err.Error()}
		}
	}
	return &RemoteError{Text: err.Error()}
}

func (r RemoteError) Error() string { return r.Text }

func (r RemoteError) Unwrap() error { return codes[r.Code] }

func readHandshake(r io.Reader) (cluster.Handshake, error) {
	var g handshake
	text, err := readFrame(r, maxSmall)
	if err == nil {
		err = json.Unmarshal(text, &g)
	}
	switch {
	case err != nil:
		return cluster.Handshake{}, err
	case g.Error != nil:
		return cluster.Handshake{}, *g.Error
	case g.Handshake == nil:
		return cluster.Handshake{}, errors.New("it sends no handshake")
	}
	return *g.Handshake, nil
}
