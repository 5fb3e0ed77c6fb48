// Package proxyproto reads the header of the PROXY protocol, versions 1 and 2, in which a
// proxy sends the address of its client. See
// https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt.
//
// The package reads no bytes after the header, and uses only the client's address.
package proxyproto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
)

const (
	prefix1    = "PROXY "
	signature2 = "\r\n\r\n\x00\r\nQUIT\n"

	// maxLine is the maximum size of a header of version 1, including CR LF.
	maxLine = 107

	// maxAddresses is the maximum size of the addresses and extensions of version 2, such
	// as a client's certificate.
	maxAddresses = 4 << 10
)

// ErrNone means that a connection does not start with a header.
var ErrNone = errors.New("missing PROXY protocol header")

// Begins reports whether a connection's first bytes can start a header.
func Begins(input []byte) bool {
	return bytes.HasPrefix(input, []byte(prefix1)) || bytes.HasPrefix(input, []byte(signature2))
}

// Read reads a header and returns the client's address. It returns the zero AddrPort if
// the header has no address, for example for a health check of the proxy itself.
func Read(r io.Reader) (client netip.AddrPort, err error) {
	var begin [len(signature2)]byte // no header is shorter
	if _, err := io.ReadFull(r, begin[:]); err != nil {
		return client, err
	}
	switch {
	case string(begin[:]) == signature2:
		return read2(r)
	case string(begin[:len(prefix1)]) == prefix1:
		return read1(r, begin[len(prefix1):])
	}
	return client, ErrNone
}

// read1 reads the rest of a header of version 1, which is a line of text.
func read1(r io.Reader, begin []byte) (client netip.AddrPort, err error) {
	line := append(make([]byte, 0, maxLine), begin...)
	for !bytes.HasSuffix(line, []byte("\r\n")) {
		if len(line) == maxLine-len(prefix1) {
			return client, errors.New("PROXY protocol line without an end")
		}
		n := len(line)
		if _, err := io.ReadFull(r, line[n:n+1]); err != nil {
			return client, err
		}
		line = line[:n+1]
	}
	f := strings.Split(string(line[:len(line)-2]), " ")
	switch {
	case f[0] == "UNKNOWN":
		return client, nil
	case len(f) == 5 && (f[0] == "TCP4" || f[0] == "TCP6"):
		ip, err := netip.ParseAddr(f[1])
		port, badPort := strconv.ParseUint(f[3], 10, 16)
		if err == nil && badPort == nil && ip.Is4() == (f[0] == "TCP4") && ip.Zone() == "" {
			return netip.AddrPortFrom(ip, uint16(port)), nil
		}
	}
	return client, fmt.Errorf("not a PROXY protocol line: %q", line)
}

// read2 reads the rest of a header of version 2, which is binary.
func read2(r io.Reader) (client netip.AddrPort, err error) {
	var head struct {
		VersionAndCommand, FamilyAndProtocol byte
		Length                               uint16
	}
	if err := binary.Read(r, binary.BigEndian, &head); err != nil {
		return client, err
	}
	if head.VersionAndCommand>>4 != 2 || head.Length > maxAddresses {
		return client, errors.New("not a PROXY protocol header, version 2")
	}
	rest := make([]byte, head.Length)
	if _, err := io.ReadFull(r, rest); err != nil {
		return client, err
	}
	const local, tcp4, tcp6 = 0, 0x11, 0x21
	size := map[byte]int{tcp4: 4, tcp6: 16}[head.FamilyAndProtocol]
	if head.VersionAndCommand&0xf == local || size == 0 {
		return client, nil
	}
	if len(rest) < 2*size+4 { // two addresses, two ports
		return client, errors.New("PROXY protocol header without addresses")
	}
	ip, _ := netip.AddrFromSlice(rest[:size])
	return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(rest[2*size:])), nil
}
