package record

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// A File is a file whose jobs were taken into the journal. The checksum is
// cryptographic because clients choose what is in such files.
type File struct {
	Name   string `json:"name"`   // without the path
	Size   int64  `json:"size"`   // bytes
	SHA256 string `json:"sha256"` // hexadecimal
}

// AppendTransfer appends what follows the kind in a record that a take-over or a merge
// is done: the Body of its Change. at is in ns since 1970.
func AppendTransfer(dst []byte, at int64, files []File) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(at))
	for _, f := range files {
		dst = append(append(dst, byte(len(f.Name))), f.Name...)
		dst = binary.AppendUvarint(dst, uint64(f.Size))
		sum, _ := hex.DecodeString(f.SHA256)
		dst = append(dst, sum...)
	}
	return dst
}

// DecodeTransfer is the reverse of AppendTransfer; ok is false for bytes that are no transfer.
func DecodeTransfer(b []byte) (at int64, files []File, ok bool) {
	d := decoder{rest: b}
	at = d.moment()
	for len(d.rest) > 0 {
		name := string(d.bytes(int(d.byte())))
		size := int64(d.uvarint())
		sum := d.bytes(sha256.Size)
		files = append(files, File{name, size, hex.EncodeToString(sum)})
		if name == "" || size < 0 {
			d.bad = true
		}
	}
	return at, files, !d.bad
}
