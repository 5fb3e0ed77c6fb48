package directory

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// TokenLife is the lifetime of a token.
const TokenLife = time.Hour

// ErrToken means that a token is invalid or has expired.
var ErrToken = errors.New("unknown token; it was used, has expired after an hour, or was created by another member")

// A Token allows one member to join.
type Token struct {
	Cluster     string
	Fingerprint string // fingerprint of the cluster's authority
	Secret      string
	Address     string // address of the member that created the token
}

// tokenPrefix is the start of each token. The number is the version of the format.
const tokenPrefix = "beanpole-join-1"

// String returns the token as one line.
func (t Token) String() string {
	return strings.Join([]string{tokenPrefix, t.Cluster, t.Fingerprint, t.Secret}, ".") + "@" + t.Address
}

// ParseToken parses the output of String. Errors do not contain the token.
func ParseToken(line string) (Token, error) {
	front, address, ok := strings.Cut(strings.TrimSpace(line), "@")
	parts := strings.Split(front, ".")
	if !ok || len(parts) != 4 || parts[0] != tokenPrefix || address == "" || len(parts[1]) != 32 || len(parts[2]) != 64 || parts[3] == "" {
		return Token{}, errors.New("invalid token; a token is the one line that 'beanpole cluster join-token DIR' prints")
	}
	return Token{Cluster: parts[1], Fingerprint: parts[2], Secret: parts[3], Address: address}, nil
}

// NewToken creates a token that is valid from now on, even on a server that is already
// running on the directory.
func (d *Directory) NewToken() (Token, error) {
	var secret [32]byte
	rand.Read(secret[:]) // never fails
	t := Token{Cluster: d.Cluster, Fingerprint: Fingerprint(d.Credentials.CA), Secret: base64.RawURLEncoding.EncodeToString(secret[:]), Address: d.Listen}
	err := vfs.WriteFile(d.fsys, d.tokenFile(t.Secret), nil)
	if err == nil {
		err = d.own()
	}
	return t, err
}

// Redeem uses up a token. The error is ErrToken if the token is invalid.
func (d *Directory) Redeem(secret string, now time.Time) error {
	if err := d.forgetTokens(now); err != nil {
		return err
	}
	err := d.fsys.Remove(d.tokenFile(secret))
	if errors.Is(err, fs.ErrNotExist) {
		return ErrToken
	}
	return errors.Join(err, d.syncDirs(tokensDir)) // the token must stay used up after a power failure
}

// tokenFile returns the name of a token's file. The name does not reveal the secret.
func (d *Directory) tokenFile(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return filepath.Join(d.path(tokensDir), hex.EncodeToString(sum[:]))
}

// forgetTokens removes expired tokens. A token's age is the age of its file.
func (d *Directory) forgetTokens(now time.Time) error {
	entries, err := os.ReadDir(d.path(tokensDir))
	if err != nil {
		return fmt.Errorf("directory: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || now.Before(info.ModTime().Add(TokenLife)) {
			continue // an error means that the token has just been redeemed
		}
		if err := os.Remove(filepath.Join(d.path(tokensDir), e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("directory: %w", err)
		}
	}
	return nil
}
