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
)

// TokenLife is how long a token is good.
const TokenLife = time.Hour

// ErrToken says that a token is not good, or not any more.
var ErrToken = errors.New("the token is not known here: it was used, is more than an hour old, or was made by another member")

// A Token lets one member join.
type Token struct {
	Cluster     string
	Fingerprint string // of the cluster's authority
	Secret      string
	Address     string // of the member that has made it
}

// tokenPrefix begins each token; the number is that of the format.
const tokenPrefix = "beanpole-join-1"

// String returns the token as one line.
func (t Token) String() string {
	return strings.Join([]string{tokenPrefix, t.Cluster, t.Fingerprint, t.Secret}, ".") + "@" + t.Address
}

// ParseToken reads what String has written. Errors do not repeat the token.
func ParseToken(line string) (Token, error) {
	front, address, ok := strings.Cut(strings.TrimSpace(line), "@")
	parts := strings.Split(front, ".")
	if !ok || len(parts) != 4 || parts[0] != tokenPrefix || address == "" || len(parts[1]) != 32 || len(parts[2]) != 64 || parts[3] == "" {
		return Token{}, errors.New("this is not a token: it is one line, as beanpole cluster join-token DIR prints it")
	}
	return Token{Cluster: parts[1], Fingerprint: parts[2], Secret: parts[3], Address: address}, nil
}

// NewToken makes a token that is good from now on. A server that runs on the directory
// knows it at once.
func (d *Directory) NewToken(now time.Time) (Token, error) {
	if err := d.forgetTokens(now); err != nil {
		return Token{}, err
	}
	var secret [32]byte
	rand.Read(secret[:]) // never fails
	t := Token{Cluster: d.Cluster, Fingerprint: Fingerprint(d.Credentials.CA), Secret: base64.RawURLEncoding.EncodeToString(secret[:]), Address: d.Listen}
	err := writeFile(d.fsys, d.tokenFile(t.Secret), []byte(now.Add(TokenLife).UTC().Format(time.RFC3339)+"\n"))
	if err == nil {
		err = d.own()
	}
	return t, err
}

// Redeem uses up a token. The error is ErrToken if that is not good.
func (d *Directory) Redeem(secret string, now time.Time) error {
	if err := d.forgetTokens(now); err != nil {
		return err
	}
	err := os.Remove(d.tokenFile(secret))
	if errors.Is(err, fs.ErrNotExist) {
		return ErrToken
	}
	return errors.Join(err, d.syncDirs(tokensDir)) // it is good once, also if the power fails
}

// tokenFile is the file of a token; its name does not tell the secret.
func (d *Directory) tokenFile(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return filepath.Join(d.path(tokensDir), hex.EncodeToString(sum[:]))
}

// forgetTokens removes tokens that have expired, and files that are none; one that is
// young may be a token that is just being written.
func (d *Directory) forgetTokens(now time.Time) error {
	entries, err := os.ReadDir(d.path(tokensDir))
	if err != nil {
		return fmt.Errorf("directory: %w", err)
	}
	for _, e := range entries {
		name := filepath.Join(d.path(tokensDir), e.Name())
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue // it was redeemed, or root is just making it
		}
		if err != nil {
			return fmt.Errorf("directory: %w", err)
		}
		end, err := time.Parse(time.RFC3339, strings.TrimSpace(string(text)))
		if err != nil {
			info, err := e.Info()
			if err != nil {
				continue // it has just been removed
			}
			end = info.ModTime().Add(TokenLife)
		}
		if now.Before(end) {
			continue
		}
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("directory: %w", err)
		}
	}
	return nil
}
