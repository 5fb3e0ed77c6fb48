package jobjson

import (
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// Missing members get their defaults, and the error names invalid members.
func TestRead(t *testing.T) {
	defaults := Job{Tube: "default", Priority: 1024, TTR: 60, Delay: 5}
	for object, want := range map[string]Job{
		`{"body":""}`: {Tube: "default", Priority: 1024, TTR: 60, Delay: 5},
		` { "body" : "a\"}," , "priority" : 0 } `:      {Tube: "default", TTR: 60, Delay: 5},
		`{"b\u006fdy":"x","tube":"t","ttr":0}`:         {Tube: "t", Priority: 1024, TTR: 1, Delay: 5},
		`{"body_base64":"","id":7,"state":"ready"}`:    {Tube: "default", Priority: 1024, TTR: 60},
		`{"body":"x","state":"delayed","time_left":9}`: {Tube: "default", Priority: 1024, TTR: 60, Delay: 9},
		`{"body":"x","state":"delayed","time_left":0}`: {Tube: "default", Priority: 1024, TTR: 60, Delay: 1},
		`{"body":"x","state":"delayed","delay":3}`:     {Tube: "default", Priority: 1024, TTR: 60, Delay: 3},
		`{"body":"x","tube":null,"delay":null}`:        {Tube: "default", Priority: 1024, TTR: 60, Delay: 5},
	} {
		got, err := Read([]byte(object), defaults)
		if err != nil || got.Tube != want.Tube || got.Priority != want.Priority || got.TTR != want.TTR || DelayAgain(&got) != want.Delay {
			t.Errorf("%s: %+v, delayed for %d, %v, want %+v", object, got, DelayAgain(&got), err, want)
		}
	}
	for object, want := range map[string]string{
		`{"body":"x","pri":1}`:               `not a job in JSON: unknown field "pri"`,
		`{"body":"x","extra":{"a":[1,"}"]}}`: `not a job in JSON: unknown field "extra"`,
		`{"body":"x","priority":-1}`:         "priority: want a number from 0 to 4294967295",
		`{"body":"x","priority":{}}`:         "priority: want a number from 0 to 4294967295",
		`{"body":"x","delay":4294967296}`:    "delay: want a number from 0 to 4294967295",
		`{"body":"x","tube":[]}`:             "tube: want a string",
		`{"body":1}`:                         "body: want a string",
		`{"body":"x","failure":{"at":"y"}}`:  "failure.at: want a whole number",
		`{"body":"x","failure":7}`:           "failure: want an object",
		`{"body":"\ud800"}`:                  "body: want Unicode text; send a body of other bytes as body_base64",
		`{"body_base64":"%"}`:                "body_base64: want base64",
		`{"body":"x","body_base64":""}`:      "it has both body and body_base64",
		`{}`:                                 "it has neither body nor body_base64",
		`{"body":"x","state":"held"}`:        `state: want one of ["ready" "reserved" "delayed" "buried"]`,
		`[1]`:                                "not a job in JSON: want an object",
		``:                                   "not a job in JSON: EOF",
		`{"body":"x"`:                        "not a job in JSON: unexpected EOF",
		`{"body":"x"} {}`:                    "not a job in JSON: data follows the object",
	} {
		if _, err := Read([]byte(object), defaults); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", object, err, want)
		}
	}
}

// FuzzRead checks that Read does not panic, and accepts only known names.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{`{"body":"a","tube":"b"}`, `{"body_base64":"YQ==","priority":1}`, `{"body":"a","x":[{"}":1}]}`, `{"\u0062ody":"a"}`, "{}", "[", "{\"body\":\"\xff\"}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		j, err := Read(object, Job{})
		if err == nil && j.Bytes() == nil && !strings.Contains(string(object), `""`) {
			t.Errorf("%q has no body: %+v", object, j)
		}
	})
}

// A job without attempts that an operator buried and kicked has no failure.
func TestFailureOfKickedJob(t *testing.T) {
	f := engine.Failure{Buried: 5000}
	if got := FailureOf(f, true, true); got == nil || got.Buried != 5 {
		t.Errorf("buried: %+v", got)
	}
	if got := FailureOf(f, true, false); got != nil {
		t.Errorf("kicked: %+v", got)
	}
}
