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

// The maximum sizes of frames, in bytes.
const (
	maxJoin    = 4 << 10       // a request to join, from an unauthenticated client: a token and an address
	maxSmall   = 1 << 20       // a handshake, a request, a message without entries
	maxEntries = 1<<30 + 1<<21 // a message with entries: the largest job and its overhead
)

// errFrame is wrapped by the errors of frames that are too long.
var errFrame = errors.New("frame too long")

// readFrame reads a frame of at most most bytes.
func readFrame(r io.Reader, most int) ([]byte, error) {
	var frame bytes.Buffer
	err := readFrameInto(&frame, r, most)
	return frame.Bytes(), err
}

// readFrameInto replaces the content of a buffer with a frame. It allocates at most twice
// the number of bytes received.
func readFrameInto(frame *bytes.Buffer, r io.Reader, most int) error {
	frame.Reset()
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	length := int64(binary.BigEndian.Uint32(head[:]))
	if length > int64(most) {
		return fmt.Errorf("%w: %d bytes, maximum %d", errFrame, length, most)
	}
	_, err := io.CopyN(frame, r, length)
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

// received lists the kinds of messages that members send to each other. A member sends
// the other kinds only to itself, or they belong to features of Raft that are not used
// here.
var received = []raftpb.MessageType{
	raftpb.MsgApp, raftpb.MsgAppResp, raftpb.MsgVote, raftpb.MsgVoteResp, raftpb.MsgPreVote, raftpb.MsgPreVoteResp, raftpb.MsgSnap,
	raftpb.MsgHeartbeat, raftpb.MsgHeartbeatResp, raftpb.MsgTimeoutNow, raftpb.MsgReadIndex, raftpb.MsgReadIndexResp,
}

// parseMessage decodes a message that the member from has sent to the member to.
func parseMessage(frame []byte, from, to uint64) (*raftpb.Message, error) {
	m := new(raftpb.Message)
	if err := proto.Unmarshal(frame, m); err != nil {
		return nil, fmt.Errorf("invalid Raft message: %w", err)
	}
	switch {
	case m.GetFrom() != from || m.GetTo() != to:
		return nil, fmt.Errorf("message from member %d to %d on a connection from member %d to %d", m.GetFrom(), m.GetTo(), from, to)
	case !slices.Contains(received, m.GetType()):
		return nil, fmt.Errorf("unexpected message of kind %v", m.GetType())
	case slices.Contains(m.GetEntries(), nil):
		return nil, errors.New("message with a nil entry")
	}
	return m, nil
}

// withEntries reports whether a message uses the connection for entries. All replication
// messages use it, including those that only advance the commit index, in order to keep
// their order.
func withEntries(m *raftpb.Message) bool {
	return m.GetType() == raftpb.MsgApp || m.GetType() == raftpb.MsgSnap
}

// A handshake is the first frame of each side on a connection for messages, in JSON. An
// error ends the connection.
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

// A RemoteError is an error that the other side has sent in place of a handshake or a
// reply. For errors.Is, it matches the error of package cluster that corresponds to its
// code.
type RemoteError struct {
	Code string `json:"code,omitempty"` // a key of codes, or empty
	Text string `json:"text"`
}

// codes maps codes to the errors on which the other side acts. The codes are part of the
// protocol between members.
var codes = map[string]error{
	"removed":     cluster.ErrRemoved,
	"not_member":  cluster.ErrNotMember,
	"rolled_back": cluster.ErrRolledBack,
	"connected":   cluster.ErrConnected,
	"not_leader":  cluster.ErrNotLeader,
}

// remoteError returns the form of err that is sent to the other side.
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
		return cluster.Handshake{}, errors.New("no handshake in the first frame")
	}
	return *g.Handshake, nil
}
