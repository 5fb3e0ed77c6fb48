package wire

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Any input gives the same commands, in any pieces. A valid command does not change when
// it is appended and parsed. parseAll checks that Next stays within its buffer and makes
// progress.
func FuzzParser(f *testing.F) {
	f.Fuzz(func(t *testing.T, input []byte, cut1, cut2 uint16, maxBody uint16) {
		p := Parser{MaxBody: int(maxBody)}
		want, wantLeft := parseAll(t, &p, input)

		a := int(cut1) % (len(input) + 1)
		b := a + int(cut2)%(len(input)-a+1)
		p = Parser{MaxBody: int(maxBody)}
		got, left := parseAll(t, &p, input, a, b)
		if !cmp.Equal(got, want) || !bytes.Equal(left, wantLeft) {
			t.Fatalf("cut at %d and %d: %+v, left %q; want %+v, left %q", a, b, got, left, want, wantLeft)
		}

		for i := range want {
			cmd := &want[i]
			if cmd.Fault != None {
				continue
			}
			p = Parser{MaxBody: int(maxBody)}
			again, left := parseAll(t, &p, AppendCommand(nil, cmd))
			if len(again) != 1 || !cmp.Equal(again[0], *cmd) || len(left) != 0 {
				t.Fatalf("%+v is parsed as %+v, left %q", *cmd, again, left)
			}
		}
	})
}

// An accepted reply does not change when it is appended and parsed, and none of its
// prefixes is accepted as a complete reply.
func FuzzParseReply(f *testing.F) {
	f.Fuzz(func(t *testing.T, input []byte) {
		var r Reply
		n, err := ParseReply(input, &r)
		if n < 0 || n > len(input) || n > 0 && err != nil {
			t.Fatalf("%d of %d bytes, %v", n, len(input), err)
		}
		if n == 0 {
			return
		}
		var part Reply
		for i := range min(n, 300) {
			if m, err := ParseReply(input[:i], &part); m != 0 || err != nil {
				t.Fatalf("the first %d of %d bytes: %d, %v", i, n, m, err)
			}
		}
		again := appendReply(nil, &r)
		var r2 Reply
		if m, err := ParseReply(again, &r2); m != len(again) || err != nil || !cmp.Equal(r, r2) {
			t.Fatalf("%+v is parsed as %+v, %v", r, r2, err)
		}
	})
}

func appendReply(dst []byte, r *Reply) []byte {
	switch form := replies[r.Kind].form; {
	case form == formID, form == formMaybeID && r.ID != 0:
		return AppendNumber(dst, r.Kind, r.ID)
	case form == formCount, form == formMaybeCount:
		return AppendNumber(dst, r.Kind, r.N)
	case form == formTube:
		return AppendUsing(dst, string(r.Tube))
	case form == formMaybeBody && r.Body != nil:
		return AppendDataEnd(append(AppendNumber(dst, OK, uint64(len(r.Body))), r.Body...))
	case form == formTwoCounts:
		return AppendDeletedBatch(dst, r.N, r.Lost)
	case form == formIDBody && r.Facts != nil:
		dst = AppendJobStart(dst, r.Kind, r.ID, len(r.Body))
		dst = append(append(dst[:len(dst)-len(crlf)], ' '), r.Facts...)
		return AppendDataEnd(append(append(dst, crlf...), r.Body...))
	case form == formIDBody:
		return AppendJob(dst, r.Kind, r.ID, r.Body)
	}
	return AppendWord(dst, r.Kind)
}

// An accepted dictionary or list does not change when it is written with quotes and
// parsed.
func FuzzParseDict(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := ParseDict(data); err == nil {
			d := dict(yamlStart)
			for key, value := range m {
				d.quoted(key, value)
			}
			if again, err := ParseDict(d); err != nil || !cmp.Equal(again, m) {
				t.Errorf("%q is parsed as %q, %v", m, again, err)
			}
		}
		if list, err := ParseList(data); err == nil {
			again := []byte(yamlStart)
			for _, item := range list {
				again = append(again, yamlItem+`"`+item+"\"\n"...)
			}
			if list2, err := ParseList(again); err != nil || !cmp.Equal(list2, list) {
				t.Errorf("%q is parsed as %q, %v", list, list2, err)
			}
		}
	})
}
