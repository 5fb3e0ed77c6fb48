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

// Limits of a token, in bytes. The longest still fits in the line "auth TOKEN" of
// the protocol, which has 224 bytes.
const (
	MinToken = 20
	MaxToken = 217
)

// ErrToken says that something cannot be a token.
var ErrToken = fmt.Errorf("access: a token has %d to %d printable ASCII characters and no blanks", MinToken, MaxToken)

// hashPrefix names the function of a Hash.
const hashPrefix = "sha256:"

// A Hash is what is kept of a token. Its text is "sha256:" and 64 hexadecimal
// digits.
type Hash [sha256.Size]byte

// NewToken returns a token of 256 random bits, 46 characters that begin with
// "bp_", so that it is recognised where it should not be.
func NewToken() string {
	var b [32]byte
	rand.Read(b[:]) // never fails
	return "bp_" + base64.RawURLEncoding.EncodeToString(b[:])
}

// HashOf returns the hash of a token, or ErrToken.
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

// ParseHash reads the text of a hash.
func ParseHash(s string) (h Hash, err error) {
	digits, ok := strings.CutPrefix(s, hashPrefix)
	if n, err := hex.Decode(h[:], []byte(digits[:min(len(digits), 2*len(h))])); !ok || err != nil || n != len(h) || len(digits) != 2*len(h) {
		return Hash{}, errors.New("want the hash of a token, sha256: and 64 hexadecimal digits ('beanpole token new' makes one)")
	}
	return h, nil
}
