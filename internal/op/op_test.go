package op

import (
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

type ofTube struct {
	Tube string `path:"tube" as:"TubeName"`
	Job  uint64 `path:"job" as:"ID"`
}

// everything has a field of each kind.
type everything struct {
	ofTube
	Sort   string  `query:"sort"`
	State  string  `query:"state" as:"State"`
	Text   *string `query:"text"`
	Points *int    `query:"points" min:"1" max:"3600"`
	Limit  int     `query:"limit" min:"1" max:"100" default:"10"`
	Recent bool    `query:"recent" default:"false"`

	To       string    `json:"to" required:"true"`
	Seconds  uint32    `json:"seconds" min:"1" want:"how long"`
	Priority *uint32   `json:"priority"`
	IDs      *[]uint64 `json:"ids"`
	Body     *[]byte   `json:"body"`
}

// Path, Query and Body restore the input that Request has encoded.
func TestRoundTrip(t *testing.T) {
	p := PlanOf(reflect.TypeFor[everything]())
	seeds.Each(t, 300, func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		text := func() string {
			return []string{"a", "..", "/", "a/b c", "?&=#", "ü\x00", "~2E", "+", `"\`}[rnd.IntN(9)]
		}
		in := everything{ofTube: ofTube{text(), rnd.Uint64()}, Limit: 1 + rnd.IntN(100), To: text(), Seconds: 1 + rnd.Uint32N(9)}
		for in.Tube == "~2E" {
			in.Tube = text() // no tube has this name; as a path segment it stands for another name
		}
		if rnd.IntN(2) == 0 {
			in.Sort, in.State, in.Text, in.Recent = text(), States[rnd.IntN(4)], new(text()), true
			in.Priority, in.IDs, in.Body = new(rnd.Uint32N(2)), &[]uint64{0, rnd.Uint64()}, &[]byte{0, 255}
		}
		if rnd.IntN(2) == 0 {
			in.Text, in.Points = new(""), new(1+rnd.IntN(9))
		}
		target, body, kind := p.Request(&in, "/tubes/{tube}/jobs/{job}")
		h, err := http.NewRequest("POST", "http://host"+target, body)
		if err != nil {
			t.Fatal(err)
		}
		var got everything
		segments := strings.Split(h.URL.EscapedPath(), "/")
		err = p.Path(&got, func(name string) string {
			segment, _ := url.PathUnescape(segments[map[string]int{"tube": 2, "job": 4}[name]])
			return segment
		})
		if err == nil {
			err = p.Query(&got, "operation", h.URL.RawQuery)
		}
		if err == nil {
			err = p.Body(&got, kind, h.ContentLength, h.Body)
		}
		if diff := cmp.Diff(in, got, cmp.AllowUnexported(everything{})); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", target, err, diff)
		}
	})
}

// The error names each mistake.
func TestMistakes(t *testing.T) {
	p := PlanOf(reflect.TypeFor[everything]())
	for query, want := range map[string]string{
		"%zz": "the query is not well-formed", "b=1&a=1": `unknown parameter "a"; op accepts ["sort" "state" "text" "points" "limit" "recent"]`,
		"limit=1&limit=1": "the parameter limit is given more than once", "limit=101": "limit: want a number from 1 to 100", "points=x": "points: want a number from 1 to 3600",
		"recent=1": "recent: want true or false", "state=": "state: want one of [ready reserved delayed buried]", "limit=&recent=&points=": "",
	} {
		if err := p.Query(new(everything), "op", query); err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
	for body, want := range map[string]string{
		"": "the body is empty or incomplete; want a JSON object", "[]": "the body is not a JSON object of the form that openapi.yaml describes", "{}{}": "data follows the JSON object in the body",
		`{"To":"a"}`: `unknown member "To"`, `{"":1}`: `unknown member ""`, `{"to":1}`: "to: want a string",
		`{"ids":[-1]}`: "ids: want a list of numbers", `{"body":"%"}`: "body: want base64", `{"priority":-1}`: "priority: want a number from 0 to 4294967295",
		`{"to":"a"}`: "seconds: want how long", `{"to":"a","seconds":1}`: "", `{"seconds":1}`: "to: want a string that is not empty", "\x00": "the body is not valid JSON, from byte 1 on",
	} {
		err := p.Body(new(everything), "application/json", int64(len(body)), strings.NewReader(body))
		if err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
	if err := p.Path(new(everything), func(string) string { return "x" }); err == nil || err.Error() != `"x" is not the id of a job: want a number` {
		t.Error(err)
	}
	in := everything{To: "a", Seconds: 1}
	if err := p.Fill(&in); err != nil || in.Limit != 10 {
		t.Errorf("%+v, %v", in, err)
	}
	in.Limit = 101
	if err := p.Fill(&in); err == nil {
		t.Error("a limit that is too large is accepted")
	}
}

// FuzzBody checks that Body does not panic, and that errors do not repeat the contents of
// a body.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{`{"to":"a","seconds":1}`, `{"ids":[1,2]}`, "{", `{"to":{"to":[1]}}`, "{}x"} {
		f.Add([]byte(seed))
	}
	p := PlanOf(reflect.TypeFor[everything]())
	f.Fuzz(func(t *testing.T, body []byte) {
		var in everything
		if err := p.Body(&in, "application/json", int64(len(body)), strings.NewReader(string(body))); err == nil && in.Seconds == 0 {
			t.Errorf("%q is accepted", body)
		}
		if _, rest, _ := p.Request(&in, "/"); rest != nil {
			if _, err := io.ReadAll(rest); err != nil {
				t.Error(err)
			}
		}
	})
}
