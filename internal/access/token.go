package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// The limits of a token, in bytes. The longest fits in the protocol's line "auth TOKEN",
// which has at most 224 bytes.
const (
	MinToken = 20
	MaxToken = 217
)

// ErrToken is the error for an invalid token.
var ErrToken = fmt.Errorf("access: a token has %d to %d printable ASCII characters and no blanks", MinToken, MaxToken)

// hashPrefix identifies the hash function.
const hashPrefix = "sha256:"

// A Hash is the stored form of a token. Its text is "sha256:" and 64 hexadecimal digits.
type Hash [sha256.Size]byte

// NewToken returns a token of 256 random bits. Its 46 characters start with "bp_", so
// that scanners recognize leaked tokens.
func NewToken() string {
	var b [32]byte
	rand.Read(b[:]) // never fails
	return "bp_" + base64.RawURLEncoding.EncodeToString(b[:])
}

// HashOf returns the hash of a token, or ErrToken if it is invalid.
func HashOf[T string | []byte](token T) (Hash, error) {
	if len(token) < MinToken || len(token) > MaxToken {
		return Hash{}, ErrToken
	}
	for i := range len(token) {
		if c := token[i]; c <= ' ' || c > '~' {
			return Hash{}, ErrToken
		}
	}
	return sha256.Sum256([]byte(token)), nil
}

// String returns the text that ParseHash reads.
func (h Hash) String() string { return hashPrefix + hex.EncodeToString(h[:]) }

// ParseHash parses the text of a hash.
func ParseHash(s string) (h Hash, err error) {
	digits, ok := strings.CutPrefix(s, hashPrefix)
	if n, err := hex.Decode(h[:], []byte(digits[:min(len(digits), 2*len(h))])); !ok || err != nil || n != len(h) || len(digits) != 2*len(h) {
		return Hash{}, errors.New("invalid token hash; want sha256: followed by 64 hexadecimal digits ('beanpole token new' creates one)")
	}
	return h, nil
}
