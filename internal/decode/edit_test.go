package decode

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// Edited data is packed like the original, and the rest of the body is unchanged.
func TestPack(t *testing.T) {
	gz := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write([]byte(text))
		z.Close()
		return b.String()
	}
	b64 := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	php := `O:4:"Mail":3:{s:2:"to";s:5:"a@b.c";s:7:"` + "\x00Mail\x00n" + `";i:7;s:2:"ok";b:1;}`
	laravel := `{"uuid":"1","data":{"commandName":"Mail","command":"O:4:\"Mail\":1:{s:2:\"to\";s:5:\"a@b.c\";}"}}`
	array := `a:2:{i:0;s:1:"x";s:1:"k";a:1:{i:0;i:7;}}`
	chained := `{"data":{"command":"O:4:\"Mail\":2:{s:2:\"to\";s:5:\"a@b.c\";s:7:\"chained\";a:0:{}}"}}`
	for _, test := range []struct{ body, as, from, to, want string }{
		{`{"a":1,"b":"x"}`, "JSON", `"x"`, `"yy"`, `{"a":1,"b":"yy"}`},
		{`{"n":12345678901234567890}`, "JSON", "901234567890", "901234567891", `{"n":12345678901234567891}`},
		{"{ \"a\": 1 }", "JSON", "1", "2", "{\n  \"a\": 2\n}"}, // the original was not compact
		{"plain\ntext", "text", "text", "words", "plain\nwords"},
		{gz(`{"a":1}`), "JSON in gzip", "1", "2", gz(`{"a":2}`)},
		{b64(`{"a":1,"b":true}`), "JSON in base64", "true", "false", b64(`{"a":1,"b":false}`)},
		{php, "JSON", "a@b.c", "ann@b.c", strings.Replace(php, `5:"a@b.c"`, `7:"ann@b.c"`, 1)},
		{php, "JSON", "7", "-12", strings.Replace(php, "i:7;", "i:-12;", 1)},
		{php, "JSON", "true", "false", strings.Replace(php, "b:1;", "b:0;", 1)},
		{laravel, "JSON", "a@b.c", "ann@b.c", strings.Replace(laravel, `5:\"a@b.c`, `7:\"ann@b.c`, 1)},
		{array, "JSON", "7", "8", strings.Replace(array, "i:7", "i:8", 1)},
		{chained, "JSON", "a@b.c", "ann@b.c", strings.Replace(chained, `5:\"a@b.c`, `7:\"ann@b.c`, 1)},
		{laravel, "JSON", `"uuid": "1"`, `"uuid": "2"`, strings.Replace(laravel, `"uuid":"1"`, `"uuid":"2"`, 1)},
		{`{"body":"` + b64(`[1,{"a":"some text"}]`) + `"}`, "JSON", "some text", "ann", `{"body":"` + b64(`[1,{"a":"ann"}]`) + `"}`},
		// This data cannot be packed again.
		{php, "JSON", `"to"`, `"from"`, "! " + ErrShape.Error()},
		{php, "JSON", "7", `"7"`, "! " + ErrShape.Error()},
		{laravel, "JSON", `"to": "a@b.c"`, `"to": "a@b.c", "cc": "x"`, "! " + ErrShape.Error()},
		{`{"a":1}`, "JSON", "1", "", "! not JSON: line 3, column 1: "},
	} {
		text, as, ok := Edit([]byte(test.body))
		if !ok || as != test.as || !strings.Contains(text, test.from) {
			t.Errorf("%q: %s, %s, %v", test.body, text, as, ok)
			continue
		}
		if same, err := Pack([]byte(test.body), text); err != nil || !strings.HasPrefix(test.body, "{ ") && as != "JSON in gzip" && string(same) != test.body {
			t.Errorf("%q unchanged: %q, %v", test.body, same, err)
		}
		got, err := Pack([]byte(test.body), strings.Replace(text, test.from, test.to, 1))
		if err != nil {
			got = []byte("! " + err.Error())
		}
		if string(got) != test.want && !(strings.HasPrefix(test.want, "! ") && strings.HasPrefix(string(got), test.want)) {
			t.Errorf("%q: %q, want %q", test.body, got, test.want)
		}
	}
	for _, body := range []string{"\x81\xa2id\x11", "\xff\xfe", "a\x00b"} {
		if text, as, ok := Edit([]byte(body)); ok {
			t.Errorf("%q: %q, %s", body, text, as)
		}
	}
}

// An error in JSON names the line and the column.
func TestNotJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": 1}`: "", "{\n  \"a\": 1,\n}": "line 3, column 1: invalid character '}'", "{\"ä\": x}": "line 1, column 7: invalid character 'x'", "": "line 1, column 0: unexpected end",
	} {
		if got := notJSON(text); (want == "") != (got == nil) || !strings.Contains(fmt.Sprint(got), want) {
			t.Errorf("%q: %v, want %s", text, got, want)
		}
	}
}

// For any body, packing unchanged data gives a body with the same views.
func FuzzPack(f *testing.F) {
	f.Add([]byte(`{"data":{"command":"O:4:\"Mail\":1:{s:2:\"to\";s:5:\"a@b.c\";}"}}`))
	f.Add([]byte(`a:1:{i:0;s:1:"x";}`))
	f.Add([]byte("eyJhIjoxLCJiIjoidGV4dCJ9"))
	f.Fuzz(func(t *testing.T, body []byte) {
		text, _, ok := Edit(body)
		if !ok {
			return
		}
		if packed, err := Pack(body, text); err == nil {
			if again, _, _ := Edit(packed); again != text && !sameJSON(again, text) {
				t.Errorf("%q: %q, and then %q", body, text, again)
			}
		}
	})
}
