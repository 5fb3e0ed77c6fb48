package decode

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
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

// The first view is the best one, and it shows the contents of the body.
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
		{base64.StdEncoding.EncodeToString([]byte(zipped(`{"a":1}`))), "gzip-base64-json", "{\n  \"a\": 1\n}"},
		{zipped("\x81\xa1n\x01"), "gzip-msgpack", "{\n  \"n\": 1\n}"},
		{base64.StdEncoding.EncodeToString([]byte("\x82\xa2id\x11\xa4name\xa5hello")), "base64-msgpack", "{\n  \"id\": 17,\n  \"name\": \"hello\"\n}"},
		{deflated("a text"), "zlib-text", "a text"},
		{`a:2:{s:1:"a";i:1;i:0;d:0.5;}`, "php", "{\n  \"a\": 1,\n  \"0\": 0.5\n}"},
		{"O:3:\"Job\":2:{s:4:\"\x00*\x00x\";b:1;s:1:\"y\";N;}", "php", "{\n  \"@class\": \"Job\",\n  \"x\": true,\n  \"y\": null\n}"},
		{"\x83\xa1n\xcd\x01\x00\xa1l\x92\xc3\xff\x01\xcb\x3f\xe0\x00\x00\x00\x00\x00\x00", "msgpack", "{\n  \"n\": 256,\n  \"l\": [\n    true,\n    -1\n  ],\n  \"1\": 0.5\n}"},
		{"\x81\xa1b\xd1\xff\x00", "msgpack", "{\n  \"b\": -256\n}"},
		{`a:2:{s:1:"a";i:1;}`, "text", `a:2:{s:1:"a";i:1;}`}, // one element is missing
		{strings.Repeat("[", 100_000), "text", "["},
	} {
		v := Views([]byte(test.body))[0]
		if v.Name != test.name || !strings.Contains(text(&v), test.want) {
			t.Errorf("%.60q: %s %q, want %s %q", test.body, v.Name, text(&v), test.name, test.want)
		}
	}
}

// Each token has a class, and all tokens together contain the whole text.
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

// The views of a packed body are bounded, even if its unpacked data is very large.
func TestBomb(t *testing.T) {
	for _, v := range Views([]byte(zipped(strings.Repeat("a", 4*unpackLimit)))) {
		if len(text(&v)) > 2*Limit {
			t.Errorf("%s has %d bytes", v.Name, len(text(&v)))
		}
	}
	const nils = unpackLimit / 4 // five bytes each in JSON
	body := append(binary.BigEndian.AppendUint32([]byte{0xdd}, nils), bytes.Repeat([]byte{0xc0}, nils)...)
	if json, ok := fromMessagePack(body); ok {
		t.Errorf("%d bytes of JSON are made of %d", len(json), len(body))
	}
}

// A row shows the job's class and arguments, without the envelope.
func TestDescribe(t *testing.T) {
	packed := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(zipped(s))) }
	for body, want := range map[string]string{
		`{"uuid":"x","displayName":"App\\Jobs\\Mail","job":"Illuminate\\Queue\\CallQueuedHandler@call","data":{"to":"ann"}}`:                                           `App\Jobs\Mail to=ann`,
		`{"displayName":"P","data":{"command":"O:1:\"P\":2:{s:5:\"queue\";N;s:1:\"m\";O:17:\"Q\\ModelIdentifier\":2:{s:5:\"class\";s:4:\"User\";s:2:\"id\";i:17;}}"}}`: `P m=User 17`,
		`{"job_class":"MailJob","arguments":[17,{"_aj_globalid":"gid://shop/User/17"}]}`:                                                                               `MailJob =17 =gid://shop/User/17`,
		`{"headers":{"task":"mail.send"},"body":"W1sxXSwgeyJ0byI6ICJhbm4ifSwge31d"}`:                                                                                   `mail.send =1 to=ann`,
		`{"task":"mail.send","args":[1],"kwargs":{"to":"ann"},"retries":3}`:                                                                                            `mail.send =1 to=ann`,
		`{"class":"Hard","args":[17,"weekly"],"jid":"b4a577edbccf1d805744efa9","retry":true}`:                                                                          `Hard =17 =weekly`,
		`{"class":"a text with blanks"}`:           `class=a text with blanks`,
		`{"type":"sent","user":{"id":"17"}}`:       `sent user.id="17"`,
		`O:4:"Mail":1:{s:2:"to";s:3:"ann";}`:       "Mail to=ann",
		"eyJqb2JfY2xhc3MiOiJNYWlsSm9iIn0=":         "MailJob",
		packed(`{"a":[1,2],"b":{},"c":[{"d":1}]}`): "a=[1,2] b={} c.0.d=1",
		"\x82\xa1n\x01\xa1l\x02":                   "n=1 l=2",
		`{"class":"ActiveJob::QueueAdapters::BackburnerAdapter::JobWrapper","args":[{"job_class":"MailJob","arguments":[1]}]}`: "MailJob =1",
		`{"class":"ActiveJob::QueueAdapters::BackburnerAdapter::JobWrapper","args":[]}`:                                        "class=ActiveJob::QueueAdapters::BackburnerAdapter::JobWrapper args=[]",
		`[]`: "", "": "", "plain": "",
	} {
		got, fields := Describe([]byte(body))
		for _, f := range fields {
			got += " " + f.Path + "=" + f.Value
		}
		if got = strings.TrimSpace(got); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
	if text, ok := Text([]byte(packed("a text\nof two lines"))); text != "a text\nof two lines" || !ok {
		t.Errorf("%q", text)
	}
}

// bodies are original bodies of frameworks: Celery 5.2, Laravel 8 and Symfony 5.4.
// Symfony's message contains an enum, and is also included as PHP alone. The enum and the
// class that serializes itself were serialized by PHP 8.2.
var bodies = []struct {
	name, kind, view string
	has              []string
}{
	{"celery", "shop.tasks.send_invoice", "json-opened", []string{"\"body\": [\n    [\n      4711\n    ],", `"na\u00efve@example.com"`, `"lang": "py"`}},
	{"laravel", `App\Jobs\SendInvoice`, "json-opened", []string{`"@class": "App\\Jobs\\SendInvoice"`, `"invoice": 4711`, `"to": "ann@example.com"`, `"maxTries": 3`}},
	{"symfony-php", `App\Message\Mail`, "json-opened", []string{`"@class": "App\\Message\\Mail"`, `"to": "naïve \"☕\" <a@example.com>"`, `"tone": "App\\Message\\Tone::Warm"`, `"delay": 5000`, `"headers": []`}},
	{"symfony-raw", `App\Message\Mail`, "php", []string{`"to": "b@example.com"`, `"tries": 3`}},
	{"php-special", "", "php", []string{`"tone": "App\\Message\\Tone::Cool"`, `"@class": "App\\Message\\Coll"`, `"@data": "x:1;{odd"`, `"2": null`}},
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", "bodies", name))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// Bodies of frameworks are recognized, and shown with their packed contents.
func TestFrameworks(t *testing.T) {
	for _, test := range bodies {
		body := read(t, test.name)
		if got, _ := Describe(body); got != test.kind {
			t.Errorf("%s is a %q, want %q", test.name, got, test.kind)
		}
		v := Views(body)[0]
		if v.Name != test.view {
			t.Errorf("%s is shown as %s, want %s", test.name, v.Name, test.view)
		}
		for _, part := range test.has {
			if !strings.Contains(text(&v), part) {
				t.Errorf("%s does not show %s:\n%s", test.name, part, text(&v))
			}
		}
	}
}

// Nested strings are decoded to a limited depth.
func TestDeepInside(t *testing.T) {
	body := `{"x":1}`
	for range 20 {
		inside, _ := json.Marshal(map[string]string{"x": base64.StdEncoding.EncodeToString([]byte(body))})
		body = string(inside)
	}
	v := Views([]byte(body))[0]
	if got := strings.Count(text(&v), `"x"`); got != 1+maxInside {
		t.Errorf("%d of 20 are shown", got)
	}
}

func FuzzViews(f *testing.F) {
	for _, one := range bodies {
		f.Add(read(f, one.name))
	}
	for _, seed := range []string{`{"a":1}`, `a:1:{i:0;O:1:"A":1:{s:1:"x";r:1;}}`, "\x81\xa1n\xc7\x01\x02a", "H4sIAAAAAAAA", "\x1f\x8b\x08", "\x78\x9c"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		Describe(body)
		Text(body)
		for _, v := range Views(body) {
			if v.Name == "" || v.Title == "" {
				t.Errorf("%+v", v)
			}
		}
	})
}

// Invisible characters, and characters that change the direction of text, are escaped.
func TestHidden(t *testing.T) {
	for body, want := range map[string]string{
		"safe\u202egnp.exe":             `safe\u202egnp.exe`,
		"a\x1b[2Jb\r\n\tc\u200bd\u0085": `a\u001b[2Jb\u000d` + "\n\t" + `c\u200bd\u0085`,
		"{\"a\u2066\":1}":               "{\n  \"a\\u2066\": 1\n}",
		"👩\u200d💻 é":                    "👩\u200d💻 é",
	} {
		text := ""
		for _, token := range Views([]byte(body))[0].Tokens {
			text += token.Text
		}
		if text != want {
			t.Errorf("%q: %q, want %q", body, text, want)
		}
	}
	if kind, _ := Describe([]byte("{\"class\":\"Send\u202e\"}")); kind != `Send\u202e` {
		t.Errorf("%q", kind)
	}
}
