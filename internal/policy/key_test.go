package policy

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// These bodies are jobs of frameworks. Jobs that are equal can differ where they contain
// "%".
const (
	laravel    = `{"uuid":"%","displayName":"App\\Jobs\\Charge","job":"Illuminate\\Queue\\CallQueuedHandler@call","maxTries":null,"data":{"commandName":"App\\Jobs\\Charge","command":"O:15:\"App\\Jobs\\Charge\":1:{s:2:\"id\";i:7;}"}}`
	backburner = `{"class":"ActiveJob::QueueAdapters::BackburnerAdapter::JobWrapper","args":[{"job_class":"ChargeJob","job_id":"%","queue_name":"default","arguments":[{"_aj_globalid":"gid://shop/User/7"}],"executions":0,"enqueued_at":"%"}]}`
	celery     = `{"body":"W1s3XSwge30sIHt9XQ==","headers":{"task":"charge","id":"%","argsrepr":"(7,)"},"properties":{"correlation_id":"%"}}`
	symfony    = `{"body":"{\"user\":7}","headers":{"type":"App\\Message\\Charge","Content-Type":"application\/json","X-Message-Stamp-%":"%"}}`
)

func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

func TestKey(t *testing.T) {
	for _, test := range []struct{ unique, body, want string }{ // if want is "no", the body has no key
		{"body", "a\nb", "a\nb"},
		{"body", "", ""},
		{"line", "a\nb", "a"},
		{"line", "a\r\nb", "a"},
		{"line", "a", "a"},
		{"line", "\nb", ""},
		{"/a", `{"a":1}`, "1|"},
		{"/a", ` {"b":{"a":2}, "a" : [1, {"c":"}"}] } `, `[1, {"c":"}"}]|`},
		{"/a/b", `{"a":{"b":"x"}}`, `"x"|`},
		{"/a,/b", `{"b":null,"a":""}`, `""|null|`},
		{"/a, /b", `{"a":1}`, "no"},
		{"/a", `{"a":1,"a":2}`, "1|"},
		{"/a/b", `{"a":{"b":1},"a":{"b":2}}`, "1|"},
		{"/a/b", `{"a":2,"a":{"b":1}}`, "1|"},
		{"/a/b,/c", `{"a":{"b":1},"a":{"b":2},"c":3}`, "1|3|"},
		{"/a,/a/b,/a/c,/d", `{"a":{"c":1,"b":2},"d":3}`, `{"c":1,"b":2}|2|1|3|`},
		{"/0", `{"0":[-0.5e+10,"\u12aF\/"]}`, `[-0.5e+10,"\u12aF\/"]|`},
		{"/a", `{"\u0061":3}`, "3|"},
		{"/a~1b/m~0n", `{"a/b":{"m~n":4}}`, "4|"},
		{"/a~01", `{"a~1":5}`, "5|"},
		{"/", `{"":6}`, "6|"},
		{"/1/0", `[0,[7]]`, "7|"},
		{"/01", `[0,1]`, "no"},
		{"/-", `[0,1]`, "no"},
		{"/a/b", `{"a":1}`, "no"},
		{"/a,/b", `{"a":1}}`, "no"},
		{"/a", `{"a":`, "no"},
		{"/a", `{a:1}`, "no"},
		{"/b", `{"a":{}]"b":2]`, "no"},
		{"/a", `{"b":}`, "no"},
		{"/a", `{"a":1} and no JSON`, "1|"},
		{"/a", ``, "no"},
		{"/a", `7`, "no"},
		{"/a", `O:8:"stdClass":0:{}`, "no"},
		{"/a", "\x00\xff", "no"},
		{"/1", "[" + nested(9_000) + ",1]", "1|"},
		{"/a", strings.Repeat(`{"a":`, 1_000_000), "no"},
		{"/a", nested(30_000), "no"},
		{"/a", `{"a":1}` + strings.Repeat(" ", maxKeyed-7), "1|"},
		{"/a", `{"a":1}` + strings.Repeat(" ", maxKeyed-6), "no"},
		{"/data/commandName, /data/command", laravel, `"App\\Jobs\\Charge"|"O:15:\"App\\Jobs\\Charge\":1:{s:2:\"id\";i:7;}"|`},
		{"/args/0/job_class, /args/0/arguments", backburner, `"ChargeJob"|[{"_aj_globalid":"gid://shop/User/7"}]|`},
		{"/headers/task, /body", celery, `"charge"|"W1s3XSwge30sIHt9XQ=="|`},
		{"/headers/type, /body", symfony, `"App\\Message\\Charge"|"{\"user\":7}"|`},
	} {
		key, err := keyOf(test.unique)
		if err != nil {
			t.Fatal(err)
		}
		buf := []byte("what was in the buffer")
		got, ok := key.Of(&buf, []byte(test.body))
		if text := strings.ReplaceAll(string(got), "\x00", "|"); text != test.want || !ok {
			if ok || test.want != "no" {
				t.Errorf("the key by %s of %.60q is %q, %v; want %q", test.unique, test.body, text, ok, test.want)
			}
		}
	}
	for _, bad := range []string{"", "data/id", "/a,b", "bodies", "/a,", "/a~2", "/~"} {
		if _, err := keyOf(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// In any JSON, a pointer selects the first value that package json finds at that place.
func FuzzKey(f *testing.F) {
	for _, body := range []string{laravel, backburner, celery, symfony, `{"a":{"a":1},"a":[{}]}`, `{"a":{"\ud800":1}}`, `[[[1]]]`,
		`{"a":2,"a":{"\u0061":1}}`, `{"a":{"a":01}}`, `{"a":{"a":"\x"}}`, `{"a":{"a":[1.,-]}}`, `{"a":{"a":1e},}`, "{\"a\":\"\x01\"}"} {
		f.Add([]byte(body))
	}
	key, _ := keyOf("/a/a")
	f.Fuzz(func(t *testing.T, body []byte) {
		got, ok := key.Of(new([]byte), body)
		if !json.Valid(body) || len(body) > maxKeyed {
			return
		}
		want, has := first(body, "a", "a")
		if ok != has || ok && string(got) != string(want)+"\x00" {
			t.Fatalf("the key of %s is %q, %v; want %q, %v", body, got, ok, want, has)
		}
	})
}

// first returns the first value at the path that names form.
func first(body []byte, names ...string) (value json.RawMessage, ok bool) {
	if len(names) == 0 {
		return body, true
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if token, _ := d.Token(); token != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		name, _ := d.Token()
		var v json.RawMessage
		d.Decode(&v)
		if name == names[0] {
			if value, ok := first(v, names[1:]...); ok {
				return value, true
			}
		}
	}
	return nil, false
}
