package wire

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// The data of stats and list replies resembles YAML. It has no escapes: a quote within a
// quoted string is written unchanged.
//
//	OK <bytes>\r\n           OK <bytes>\r\n
//	---\n                    ---\n
//	pid: 7\n                 - default\n
//	version: "1.13"\n        - mail\n
//	\r\n                     \r\n
const (
	yamlStart = "---\n"
	yamlItem  = "- "
	yamlColon = ": "
)

// gap reserves space for the longest line before data.
const gap = "OK 18446744073709551615\r\n"

// openData starts a reply with data at the end of dst. It reserves space for the line,
// which is written when the size is known.
func openData(dst []byte) []byte {
	dst = append(dst, gap...)
	return append(dst, yamlStart...)
}

// closeData completes the reply that starts at dst[start].
func closeData(dst []byte, start int) []byte {
	data := dst[start+len(gap):]
	dst = AppendNumber(dst[:start], OK, uint64(len(data))) // the line fits in the gap
	dst = append(dst, data...)                             // closes the rest of the gap
	return append(dst, crlf...)
}

// AppendListStart starts the reply to list-tubes or list-tubes-watched: a list of n names
// with a total length of size bytes. AppendListItem for each name, and then
// AppendDataEnd, must follow. So a reply of megabytes can be written in parts.
func AppendListStart(dst []byte, n, size int) []byte {
	size += len(yamlStart) + n*(len(yamlItem)+len("\n"))
	dst = AppendNumber(dst, OK, uint64(size))
	return append(dst, yamlStart...)
}

// AppendListItem appends the next name of a list.
func AppendListItem(dst []byte, name string) []byte {
	dst = append(dst, yamlItem...)
	dst = append(dst, name...)
	return append(dst, '\n')
}

// AppendCaps appends the reply to caps: the commands of Own.
func AppendCaps(dst []byte) []byte {
	start := len(dst)
	dst = openData(dst)
	for _, op := range Own {
		dst = AppendListItem(dst, op.String())
	}
	return closeData(dst, start)
}

// A dict is a buffer of dictionary entries.
type dict []byte

func (d *dict) key(key string) {
	*d = append(*d, key...)
	*d = append(*d, yamlColon...)
}

func (d *dict) uint(key string, v uint64) {
	d.key(key)
	*d = append(strconv.AppendUint(*d, v, 10), '\n')
}

func (d *dict) int(key string, v int64) {
	d.key(key)
	*d = append(strconv.AppendInt(*d, v, 10), '\n')
}

func (d *dict) bare(key, v string) {
	d.key(key)
	*d = append(*d, v...)
	*d = append(*d, '\n')
}

func (d *dict) quoted(key, v string) {
	d.key(key)
	*d = append(*d, '"')
	*d = append(*d, v...)
	*d = append(*d, "\"\n"...)
}

// text appends a string, quoted as the version requires.
func (d *dict) text(key, v string, c Compat) {
	if c == Compat112 {
		d.bare(key, v)
	} else {
		d.quoted(key, v)
	}
}

func (d *dict) bool(key string, v bool) {
	d.key(key)
	*d = append(strconv.AppendBool(*d, v), '\n')
}

// cpu appends a duration in seconds with six decimals.
func (d *dict) cpu(key string, v time.Duration) {
	d.key(key)
	*d = strconv.AppendInt(*d, int64(v/time.Second), 10)
	*d = append(*d, '.')
	*d = appendPadded(*d, uint64(v%time.Second/time.Microsecond), 10, 6)
	*d = append(*d, '\n')
}

// hex appends 16 hexadecimal digits.
func (d *dict) hex(key string, v uint64) {
	d.key(key)
	*d = append(appendPadded(*d, v, 16, 16), '\n')
}

// appendPadded appends v with leading zeros up to the given width.
func appendPadded(dst []byte, v uint64, base, width int) []byte {
	start := len(dst)
	dst = strconv.AppendUint(dst, v, base)
	for len(dst)-start < width {
		dst = slices.Insert(dst, start, '0')
	}
	return dst
}

// ParseDict returns the entries of the data of a stats reply. It removes quotes around
// values.
func ParseDict(data []byte) (map[string]string, error) {
	m := make(map[string]string)
	err := parseLines(data, func(line []byte) bool {
		key, value, ok := bytes.Cut(line, []byte(yamlColon))
		if ok && len(key) > 0 {
			m[string(key)] = string(unquote(value))
			return true
		}
		return false
	})
	return m, err
}

// ParseList returns the items of the data of a list reply. It removes quotes around
// items.
func ParseList(data []byte) ([]string, error) {
	var items []string
	err := parseLines(data, func(line []byte) bool {
		item, ok := bytes.CutPrefix(line, []byte(yamlItem))
		items = append(items, string(unquote(item)))
		return ok
	})
	return items, err
}

// parseLines calls parse with each line of data after the first. If parse returns false,
// parseLines returns an error.
func parseLines(data []byte, parse func(line []byte) bool) error {
	rest, ok := bytes.CutPrefix(data, []byte(yamlStart))
	if !ok {
		return fmt.Errorf("%w: data does not start with %q", ErrReply, yamlStart)
	}
	for len(rest) > 0 {
		var line []byte
		line, rest, ok = bytes.Cut(rest, []byte("\n"))
		if !ok || !parse(line) {
			return fmt.Errorf("%w: line %q of data", ErrReply, line)
		}
	}
	return nil
}

func unquote(v []byte) []byte {
	if len(v) >= 2 && v[0] == '"' && v[len(v)-1] == '"' {
		return v[1 : len(v)-1]
	}
	return v
}
