package proxyproto

import (
	"bytes"
	"io"
	"net/netip"
	"strings"
	"testing"
	"testing/iotest"
)

func v2(command, family byte, rest string) string {
	return signature2 + string([]byte{command, family, byte(len(rest) >> 8), byte(len(rest))}) + rest
}

func TestRead(t *testing.T) {
	const ip4 = "\xc0\x00\x02\x07\x0a\x00\x00\x01" + "\x9c\x40\x2c\x24"
	ip6 := "\x20\x01\x0d\xb8" + strings.Repeat("\x00", 11) + "\x07" + strings.Repeat("\xff", 16) + "\x9c\x40\x2c\x24"
	for header, want := range map[string]string{
		"PROXY TCP4 192.0.2.7 10.0.0.1 40000 11300\r\n":      "192.0.2.7:40000",
		"PROXY TCP6 2001:db8::7 2001:db8::1 40000 11300\r\n": "[2001:db8::7]:40000",
		"PROXY UNKNOWN\r\n": "",
		"PROXY UNKNOWN ffff:f...f:ffff whatever 65535 65535\r\n": "",

		v2(0x21, 0x11, ip4):                               "192.0.2.7:40000",
		v2(0x21, 0x11, ip4+"\x03\x00\x04abcd"):            "192.0.2.7:40000",
		v2(0x21, 0x21, ip6):                               "[2001:db8::7]:40000",
		v2(0x20, 0x00, ""):                                "",
		v2(0x20, 0x11, ip4):                               "",
		v2(0x21, 0x31, strings.Repeat("/", 216)):          "",
		v2(0x21, 0x00, strings.Repeat("x", maxAddresses)): "",
	} {
		if !Begins([]byte(header)) {
			t.Errorf("%q was rejected as a header", header)
		}
		r := iotest.HalfReader(strings.NewReader(header + "stats\r\n"))
		client, err := Read(r)
		if rest, _ := io.ReadAll(r); err != nil || string(rest) != "stats\r\n" {
			t.Errorf("%q: %v, with %q left", header, err, rest)
		}
		if got := client.String(); client.IsValid() && got != want || !client.IsValid() && want != "" {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
	for _, header := range []string{
		"", "stats\r\nstats\r\n", "PROXY ", "PROXY TCP4 192.0.2.7",
		"PROXY TCP4 192.0.2.7 10.0.0.1 40000\r\n",
		"PROXY TCP4 2001:db8::7 2001:db8::1 1 2\r\n",
		"PROXY TCP6 192.0.2.7 10.0.0.1 1 2\r\n",
		"PROXY TCP6 fe80::1%eth0 fe80::2 1 2\r\n",
		"PROXY TCP4 192.0.2.7 10.0.0.1 65536 2\r\n",
		"PROXY UNKNOWN " + strings.Repeat("x", maxLine) + "\r\n",
		v2(0x11, 0x11, ip4), v2(0x21, 0x11, ip4[:11]), v2(0x21, 0x11, ip4)[:20],
		v2(0x21, 0x00, strings.Repeat("x", maxAddresses+1)),
	} {
		if client, err := Read(strings.NewReader(header)); err == nil {
			t.Errorf("%q: %v, and no error", header, client)
		}
	}
}

// FuzzRead checks that Read consumes a valid header and no byte after it.
func FuzzRead(f *testing.F) {
	f.Add([]byte("PROXY TCP4 192.0.2.7 10.0.0.1 40000 11300\r\nstats\r\n"))
	f.Add([]byte(v2(0x21, 0x11, "\xc0\x00\x02\x07\x0a\x00\x00\x01\x9c\x40\x2c\x24") + "stats\r\n"))
	f.Fuzz(func(t *testing.T, input []byte) {
		r := bytes.NewReader(input)
		client, err := Read(r)
		taken := input[:len(input)-r.Len()]
		if err == nil && (!Begins(input) || len(taken) > len(signature2)+4+maxAddresses) {
			t.Errorf("%q was accepted as a header", taken)
		}
		if client != (netip.AddrPort{}) && err != nil {
			t.Error("an address, and", err)
		}
	})
}
