package directory

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"strconv"
	"time"
)

// Credentials identifies a member to others, and contains the certificate authority that
// identifies the other members.
type Credentials struct {
	Cluster     string // the cluster's id
	ID          uint64 // id of the member
	Certificate tls.Certificate
	CA          *x509.Certificate
	caKey       crypto.PrivateKey
}

// NewCluster returns the id of a new cluster: 128 random bits in hexadecimal.
func NewCluster() string {
	var id [16]byte
	rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// maxID is the largest id of a member. All JSON parsers represent numbers up to maxID
// exactly.
const maxID = 1<<53 - 1

// NewID returns a random id for a member, from 1 to 2^53-1.
func NewID() uint64 {
	var id [8]byte
	rand.Read(id[:]) // never fails
	return max(1, binary.LittleEndian.Uint64(id[:])&maxID)
}

// NewCA returns the credentials of the first member of a cluster, with a new certificate
// authority.
func NewCA(cluster string, id uint64) *Credentials {
	template := certificate(cluster, "beanpole cluster")
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign
	authority := &Credentials{Cluster: cluster, CA: template}
	der, key := authority.sign(template)
	authority.CA, authority.caKey = must(x509.ParseCertificate(der)), key
	return authority.Issue(id)
}

// Issue returns credentials for another member of the same cluster.
func (c *Credentials) Issue(id uint64) *Credentials {
	template := certificate(c.Cluster, "member "+strconv.FormatUint(id, 10))
	template.DNSNames = []string{MemberName(c.Cluster, id), AnyMember(c.Cluster)}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, key := c.sign(template)
	pair := tls.Certificate{Certificate: [][]byte{der, c.CA.Raw}, PrivateKey: key}
	return &Credentials{Cluster: c.Cluster, ID: id, Certificate: pair, CA: c.CA, caKey: c.caKey}
}

// sign creates a certificate and its key. The authority signs it; if the authority has no
// key yet, the certificate is self-signed.
func (c *Credentials) sign(template *x509.Certificate) (der []byte, key crypto.PrivateKey) {
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		panic(err) // never fails
	}
	signer := c.caKey
	if signer == nil {
		signer = key
	}
	return must(x509.CreateCertificate(rand.Reader, template, c.CA, public, signer)), key
}

// must returns made if err is nil. Operations on this package's keys and templates cannot
// fail.
func must[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}

// certificate returns the common part of all certificates of a cluster.
func certificate(cluster, name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetUint64(NewID()),
		Subject:      pkix.Name{Organization: []string{cluster}, CommonName: name},
		NotBefore:    time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), // the clocks of machines differ
		NotAfter:     time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
	}
}

// MemberName returns the name in the certificate of one member of a cluster.
func MemberName(cluster string, id uint64) string {
	return strconv.FormatUint(id, 10) + "." + AnyMember(cluster)
}

// AnyMember returns the name in the certificates of all members of a cluster.
func AnyMember(cluster string) string { return cluster + ".beanpole" }

// MemberOf returns the id of the member that owns a certificate. ok is false if the owner
// is not a member of the cluster. The caller must have verified the certificate.
func MemberOf(cluster string, c *x509.Certificate) (id uint64, ok bool) {
	for _, name := range c.DNSNames {
		var rest string
		if n, _ := fmt.Sscanf(name, "%d.%s", &id, &rest); n == 2 && name == MemberName(cluster, id) && id != 0 {
			return id, true
		}
	}
	return 0, false
}

// Fingerprint returns the SHA-256 sum of a certificate in hexadecimal.
func Fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}

// A Bundle contains the credentials of a joining member in PEM form: the authority's
// certificate and key, and the member's certificate and key.
type Bundle struct {
	CA     string `json:"ca"`
	CAKey  string `json:"ca_key"`
	Member string `json:"member"`
	Key    string `json:"key"`
}

// Bundle encodes the credentials.
func (c *Credentials) Bundle() Bundle {
	key := func(k crypto.PrivateKey) string { return encode("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(k))) }
	return Bundle{
		CA: encode("CERTIFICATE", c.CA.Raw), CAKey: key(c.caKey),
		Member: encode("CERTIFICATE", c.Certificate.Certificate[0]), Key: key(c.Certificate.PrivateKey),
	}
}

// Credentials decodes a bundle. The error names the invalid part.
func (b Bundle) Credentials(cluster string, id uint64) (*Credentials, error) {
	authority, err := tls.X509KeyPair([]byte(b.CA), []byte(b.CAKey))
	if err != nil {
		return nil, fmt.Errorf("ca.crt and ca.key: %w", err)
	}
	pair, err := tls.X509KeyPair([]byte(b.Member), []byte(b.Key))
	if err != nil {
		return nil, fmt.Errorf("member.crt and member.key: %w", err)
	}
	if of, ok := MemberOf(cluster, pair.Leaf); !ok || of != id {
		return nil, fmt.Errorf("member.crt: the certificate does not belong to member %d of cluster %s", id, cluster)
	}
	ca := authority.Leaf
	if err := pair.Leaf.CheckSignatureFrom(ca); err != nil {
		return nil, fmt.Errorf("member.crt: %w", err)
	}
	pair.Certificate = append(pair.Certificate, ca.Raw)
	return &Credentials{Cluster: cluster, ID: id, Certificate: pair, CA: ca, caKey: authority.PrivateKey}, nil
}

func encode(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
