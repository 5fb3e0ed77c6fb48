package api

import (
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/op"
)

var (
	update = flag.Bool("update", false, "write the golden files")
	dump   = flag.String("dump", "", "write each answer of TestGolden to this `file`")
)

// A shape is what random requests for an operation are made of: the names of its parameters, and of the members of its body.
type shape struct{ id, method, path, query, body string }

// shapes are those of all operations, and some more: of a body with many members few are right.
func shapes() (all []shape) {
	paths := strings.NewReplacer("{job}", "{id}", "{task}", "{id}", "{connection}", "{id}", "{pattern}", "{tube}")
	bodies := map[string][]string{
		"putJob": {"body", "body ttr", "body delay", "body_base64"}, "setPolicy": {"set"}, "startTask": {"do state", "do ids"}, "changeJob": {"priority delay ttr"},
	}
	for _, o := range operations() {
		if o.ID == "transferLead" {
			continue
		}
		one := shape{o.ID, o.method, paths.Replace(o.path), "", ""}
		for _, f := range o.plan.Fields {
			switch f.Place {
			case op.Query:
				if o.ID != "startTask" { // whose wait would be for a turn of others, too
					one.query += " " + f.Name
				}
			case op.Member:
				one.body += " " + f.Name
			case op.Body:
				one.body = "lines"
			}
		}
		all = append(all, one)
		for _, one.body = range bodies[o.ID] {
			all = append(all, one)
		}
	}
	return all
}

// What the parameters may be, and the members of bodies, as JSON has them; right and wrong.
var (
	someTubes = []string{"mail", "mail", "mail", "other", "news", "none", ".", "-bad", "a/b"}
	someQuery = map[string][]string{
		"step": {"1", "60", "2", ""}, "points": {"1", "3", "1440", "3601", "0", "x"}, "limit": {"1", "2", "5", "100", "1000", "0", "10001", "-1", "x", ""},
		"tube": someTubes, "wait": {"0", "1", "61", "x"}, "state": {"ready", "ready", "reserved", "delayed", "buried", "held", ""},
		"cursor": {"", "x", "bWFpbA", "4", "40000000000.1", "MCBtYWls"}, "sort": {"name", "-ready", "attention", "-put_per_second", "id", "-age", "holding", "color", ""},
		"q": {"mail", "m*", "?", "", "*[", "l", "user:17", "/user", "/^h/", "/(/", "/a{200}/", "state:buried", strings.Repeat("x", 2049)}, "has": {"ready", "buried,ready", "paused", "blue", ""}, "recent": {"true", "false", "1", ""}, "bodies": {"true", "false", "yes", ""},
		"waiting": {"true", "false", "0"}, "holding": {"true", "false", "0"}, "each": {"true", "false", "0"},
	}
	someNumbers = []string{"0", "5", "1024", "4294967295", "4294967296", "-1", "1.5", `"x"`, "null", "{}"}
	someTexts   = []string{`"hello"`, `"{\"user\":17}"`, `""`, `"caf\u00e9"`, `"\ud800"`, "1", "null"}
	someMembers = map[string][]string{
		"body": someTexts, "body_base64": {`"//79"`, `""`, `"%"`, "1", "null"}, "priority": someNumbers, "delay": someNumbers, "ttr": someNumbers, "count": someNumbers,
		"seconds": someNumbers, "do": {`"kick"`, `"bury"`, `"delete"`, `"move"`, `"change"`, `"release"`, `"eat"`, "1"}, "state": {`"ready"`, `"ready"`, `"buried"`, `"delayed"`, `"reserved"`, `"held"`, "null", "1"},
		"ids": {"[1,2,3]", "[]", "[-1]", `"x"`, "null", "[4,5,6,7,8,9,10]"}, "q": {`"hello"`, `"user:17"`, `"/^h/"`, `"/(/"`, `""`, "1", "null"},
		"to": {`"other"`, `"news"`, `"mail"`, `"-bad"`, `""`, "1", "null"}, "x": {"1"},
		"kind": {`"buried"`, `"unwatched"`, `"limit"`, `"x"`, "1"}, "tube": {`"mail"`, `"other"`, `"-bad"`, `""`, "1"},
		"set": {`{"max-attempts":"5"}`, `{"paused":"no","burst":"2"}`, `{"max-attempts":"0.5"}`, `{"x":"1"}`, `{"rate":5}`, "{}", "null", "1"}, "unset": {`["burst"]`, `["x"]`, "[]", "[1]", "1"},
	}
	someLines = []string{
		`{"body":"hello","tube":"mail"}`, `{"body":"a","tube":"news","state":"buried"}`, `{"body_base64":"//79"}`, `{"body":"x","delay":9,"state":"delayed","time_left":5}`, "", `{"body":1}`, `{"tube":"mail"}`, "[",
	}
)

// random returns the request of a shape that is the i-th; last is the id of the last job.
func (s *shape) random(rnd *rand.Rand, i, last int) *http.Request {
	one := func(of []string) string { return of[rnd.IntN(len(of))] }
	seldom := func(n int) bool { return rnd.IntN(n) == 0 }
	path := strings.ReplaceAll(s.path, "{tube}", op.Segment(one(someTubes)))
	id := fmt.Sprint(max(0, last-rnd.IntN(20))) // of a job
	switch {
	case strings.HasPrefix(s.path, "/tasks"):
		id = fmt.Sprint(rnd.IntN(2 + i/150))
	case strings.HasPrefix(s.path, "/connections"):
		id = fmt.Sprint(rnd.IntN(14))
	}
	if seldom(40) {
		id = one([]string{"x", "-1", "18446744073709551616", "99999"})
	}
	path = strings.ReplaceAll(path, "{id}", id)
	var query []string
	add := func(name, value string) { query = append(query, name+"="+url.QueryEscape(value)) }
	for name := range strings.FieldsSeq(s.query) {
		if seldom(3) || name == "state" && !seldom(4) {
			add(name, one(someQuery[name]))
		}
	}
	if seldom(30) {
		add(one([]string{"color", "Limit", "limit", "state"}), "1")
	}
	if seldom(200) {
		query = append(query, "%zz")
	}
	if len(query) > 0 {
		path += "?" + strings.Join(query, "&")
	}
	body, kind := "", ""
	if s.body == "lines" {
		for range rnd.IntN(4) {
			body += one(someLines) + "\n"
		}
		kind = "application/x-ndjson"
	} else if s.body != "" {
		var members []string
		for name := range strings.FieldsSeq(s.body) {
			if len(strings.Fields(s.body)) < 3 || seldom(3) {
				members = append(members, fmt.Sprintf("%q:%s", name, one(someMembers[name])))
			}
		}
		if seldom(40) {
			members = append(members, one([]string{`"x":1`, `"Priority":1`, `"":0`, `"priority":1`}))
		}
		body, kind = "{"+strings.Join(members, ",")+"}", "application/json"
	}
	if seldom(30) {
		body = one([]string{"", "null", "[]", "{", "{}{}", "{} ", `{"x":1}`, "\xff"})
	}
	if seldom(40) {
		kind = one([]string{"", "text/plain", "application/json; charset=utf-8", "application/json"})
	}
	h := httptest.NewRequest(s.method, Prefix+path, strings.NewReader(body))
	if body == "" {
		h.Body, h.ContentLength = http.NoBody, 0
	}
	if kind != "" {
		h.Header.Set("Content-Type", kind)
	}
	if seldom(60) {
		h.Header.Set("If-Match", one([]string{"*", `"x"`}))
	}
	if seldom(3) {
		h.Header.Set("X-Who", one([]string{"manage", "stats", "stats mail", "peek", "both", "both mail", "put", "put mail", "reserve", "nobody"}))
	}
	return h
}

// What 20,000 random requests are answered, right and wrong ones, is as it was when the answers were last looked at: for each operation,
// a hash of all its answers. Of a request that is wrong only the status counts, for it may be wrong in several ways.
// Each answer is in the file that -dump names, to be compared with that of another commit. With -short it is the first 2,000.
func TestGolden(t *testing.T) {
	const early = 2000
	requests := 20_000
	if testing.Short() {
		requests = early
	}
	var out io.Writer = io.Discard
	if *dump != "" {
		f, err := os.Create(*dump)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		out = f
	}
	known := rightsPolicy(t)
	nobody, err := access.New(access.Config{})
	if err != nil {
		t.Fatal(err)
	}
	sums := make(map[string]string)
	synctest.Test(t, func(t *testing.T) {
		r := start(t, Options{Version: "v", Identify: func(h *http.Request) (*access.Identity, bool) {
			who := h.Header.Get("X-Who")
			if who == "" {
				return nobody.Nobody(), true
			}
			return known[who], known[who] != nil
		}})
		for range 10 {
			r.talk("use mail", "watch mail", "watch news", "put 5 0 60 1\r\nx", "reserve-with-timeout 0")
		}
		go r.Record(t.Context())
		last, all := 10, shapes()
		rnd := rand.New(rand.NewPCG(1, 2))
		hashes := make(map[string][sha256.Size]byte)
		add := func(prefix string) {
			for id, sum := range hashes {
				sums[prefix+id] = fmt.Sprintf("%x", sum[:8])
			}
		}
		for i := range requests {
			s := &all[rnd.IntN(len(all))]
			h := s.random(rnd, i, last)
			asked := fmt.Sprintf("%d %s %s %q %q %q", i, h.Method, h.URL, h.Header["X-Who"], h.Header["If-Match"], h.Header["Content-Type"])
			w := httptest.NewRecorder()
			r.ServeHTTP(w, h)
			time.Sleep(20_000_007) // for tasks, and so that no sample is taken just then
			synctest.Wait()
			if w.Code == http.StatusCreated {
				fmt.Sscanf(w.Body.String(), `{"id":%d`, &last)
			}
			answer := fmt.Sprintf("%d %q %q %q %q\n", w.Code, w.Header()["Location"], w.Header()["Retry-After"], w.Header()["Content-Type"], w.Header()["Content-Disposition"])
			if fmt.Fprintf(out, "%s\n%s%s\n", asked, answer, w.Body); w.Code == http.StatusBadRequest {
				answer = "400"
			} else {
				answer += w.Body.String()
			}
			before := hashes[s.id]
			hashes[s.id] = sha256.Sum256(append(before[:], answer...))
			if i%50 == 49 {
				r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", Prefix+"/undrain", nil))
			}
			if i == early-1 {
				add("early ")
			}
		}
		if requests > early {
			add("")
		}
	})
	const file = "testdata/answers.json"
	if *update && !testing.Short() {
		text, _ := json.MarshalIndent(sums, "", "\t")
		if err := os.WriteFile(file, append(text, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]string
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	for _, id := range slices.Sorted(maps.Keys(sums)) {
		if sums[id] != want[id] {
			t.Errorf("%s: the answers are not what they were: compare them by -dump, and then -update", id)
		}
	}
}
