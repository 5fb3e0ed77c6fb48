package decode

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"strings"
	"testing"
)

func text(v *View) string {
	var b strings.Builder
	for _, t := range v.Tokens {
		b.WriteString(t.Text)
	}
	return b.String()
}

func zipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(s))
	z.Close()
	return b.String()
}

func deflated(s string) string {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	z.Write([]byte(s))
	z.Close()
	return b.String()
}

// The best view comes first, and shows what is in the body.
func TestViews(t *testing.T) {
	for _, test := range []struct{ body, name, want string }{
		{`{"n":12345678901234567890,"s":"a"}`, "json", "{\n  \"n\": 12345678901234567890,\n  \"s\": \"a\"\n}"},
		{` [1,true,null] `, "json", "[\n  1,\n  true,\n  null\n]"},
		{`plain`, "text", "plain"},
		{"\xff\xfe", "hex", "ff fe"},
		{"", "text", ""},
		{base64.StdEncoding.EncodeToString([]byte(`{"task":"x.y.z"}`)), "base64-json", "{\n  \"task\": \"x.y.z\"\n}"},
		{base64.RawURLEncoding.EncodeToString([]byte("just a text of some length")), "base64-text", "just a text of some length"},
		{zipped(`{"a":1}`), "gzip-json", "{\n  \"a\": 1\n}"},
		{deflated("a text"), "zlib-text", "a text"},
		{`a:2:{s:1:"a";i:1;i:0;d:0.5;}`, "php", "{\n  \"a\": 1,\n  \"0\": 0.5\n}"},
		{"O:3:\"Job\":2:{s:4:\"\x00*\x00x\";b:1;s:1:\"y\";N;}", "php", "{\n  \"@class\": \"Job\",\n  \"x\": true,\n  \"y\": null\n}"},
		{"\x83\xa1n\xcd\x01\x00\xa1l\x92\xc3\xff\x01\xcb\x3f\xe0\x00\x00\x00\x00\x00\x00", "msgpack", "{\n  \"n\": 256,\n  \"l\": [\n    true,\n    -1\n  ],\n  \"1\": 0.5\n}"},
		{"\x81\xa1b\xd1\xff\x00", "msgpack", "{\n  \"b\": -256\n}"},
		{`a:2:{s:1:"a";i:1;}`, "text", `a:2:{s:1:"a";i:1;}`}, // one is missing
		{strings.Repeat("[", 100_000), "text", "["},
	} {
		v := Views([]byte(test.body))[0]
		if v.Name != test.name || !strings.Contains(text(&v), test.want) {
			t.Errorf("%.60q: %s %q, want %s %q", test.body, v.Name, text(&v), test.name, test.want)
		}
	}
}

// Tokens have classes, and nothing of the text is lost.
func TestTokens(t *testing.T) {
	v := Views([]byte(`{"k\"":[-1.5e3,"v",true]}`))[0]
	classes := ""
	for _, token := range v.Tokens {
		classes += token.Class + " "
	}
	if classes != "punct key punct number punct string punct word punct " {
		t.Error(classes)
	}
}

// What is packed may be larger than anybody wants to see.
func TestBomb(t *testing.T) {
	for _, v := range Views([]byte(zipped(strings.Repeat("a", 4*unpackLimit)))) {
		if len(text(&v)) > 2*Limit {
			t.Errorf("%s has %d bytes", v.Name, len(text(&v)))
		}
	}
}

func TestKind(t *testing.T) {
	for body, want := range map[string]string{
		`{"displayName":"App\\Jobs\\Mail","job":"Illuminate\\Queue\\CallQueuedHandler@call"}`: `App\Jobs\Mail`,
		`{"job_class":"MailJob"}`:                    "MailJob",
		`{"headers":{"task":"mail.send"},"body":""}`: "mail.send",
		`{"class":"Hard","args":[]}`:                 "Hard",
		`{"class":"a text with blanks"}`:             "",
		`O:4:"Mail":0:{}`:                            "Mail",
		"eyJqb2JfY2xhc3MiOiJNYWlsSm9iIn0=":           "MailJob",
		`[]`:                                         "", "": "", "plain": "",
	} {
		if got := Kind([]byte(body)); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

func FuzzViews(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `a:1:{i:0;O:1:"A":1:{s:1:"x";r:1;}}`, "\x81\xa1n\xc7\x01\x02a", "H4sIAAAAAAAA", "\x1f\x8b\x08", "\x78\x9c"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		Kind(body)
		for _, v := range Views(body) {
			if v.Name == "" || v.Title == "" {
				t.Errorf("%+v", v)
			}
		}
	})
}
