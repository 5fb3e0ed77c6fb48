package console

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/client/admin"

	"github.com/beanpole-mq/beanpole/internal/decode"
	"github.com/beanpole-mq/beanpole/internal/query"
)

// rowTexts returns the displayed rows of some bodies, and the common part above them.
func rowTexts(wanted *regexp.Regexp, bodies ...string) (texts []string, above string) {
	var jobs []admin.Job
	for _, body := range bodies {
		raw := []byte(body)
		jobs = append(jobs, admin.Job{BodyBase64: &raw})
	}
	rows, same := jobRows(jobs, wanted)
	for _, row := range rows {
		text := strings.TrimSpace(row.Kind+" "+decode.Joined(row.Fields)) + row.Before
		if row.Match != "" {
			text += "[" + row.Match + "]"
		}
		texts = append(texts, text+row.After)
	}
	return texts, decode.Joined(same)
}

// A row shows the parts that differ from other rows. The common parts are above the rows.
func TestRowsDiffer(t *testing.T) {
	const laravel = `{"uuid":"1","displayName":"App\\Mail","data":{"to":"%s","template":"welcome"}}`
	for _, test := range []struct {
		bodies      []string
		want, above string
	}{
		{[]string{`{"v":2,"user":{"id":17,"plan":"pro"}}`, `{"v":2,"user":{"id":18,"plan":"pro"}}`}, "user.id: 17|user.id: 18", "v: 2, user.plan: pro"},
		{[]string{fmt.Sprintf(laravel, "ann"), fmt.Sprintf(laravel, "bob")}, `App\Mail to: ann|App\Mail to: bob`, "template: welcome"},
		{[]string{`{"v":2}`, `{"v":2}`}, "v: 2|v: 2", ""},
		{[]string{`{"v":2,"n":1}`}, "v: 2, n: 1", ""},
		{[]string{`{"type":"a","n":1,"v":2}`, `{"type":"a","n":2,"v":2}`, `{"type":"b","n":1,"v":2}`}, "a n: 1|a n: 2|b n: 1, v: 2", ""},
		{[]string{"two\nlines", "", "\xff\x00"}, "two lines||ff00", ""},
	} {
		if texts, above := rowTexts(nil, test.bodies...); strings.Join(texts, "|") != test.want || above != test.above {
			t.Errorf("%q above %q, want %q above %q", above, texts, test.above, test.want)
		}
	}
}

// A row of a search starts shortly before the match, and marks it.
func TestRowsMatch(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, test := range []struct {
		search     string
		body, want string
	}{
		{"needle", long + "a needle here", "…" + long[:38] + "a [needle] here"},
		{"/n.?edle/", `{"displayName":"Mail","data":{"to":"the needle"}}`, "Mailto: the [needle]"},
		{"/user/id = 17", `{"a":1,"user":{"id":17},"b":2}`, "a: 1, [user.id: 17], b: 2"},
		{`"\":17"`, `{"a":1,"user":{"id":17}}`, `{"a":1,"user":{"id[":17]}}`},
	} {
		asked, err := query.Parse(test.search)
		if err != nil {
			t.Fatal(err)
		}
		if texts, _ := rowTexts(markOf(asked), test.body); texts[0] != test.want {
			t.Errorf("%v: %q, want %q", test.search, texts[0], test.want)
		}
	}
}

// TestNames completes the last word of a search: conditions, states, and the tubes that
// the user can see.
func TestNames(t *testing.T) {
	r := start(t, policyOf(t), Options{})
	r.put("mail", "x")
	r.put("mailing", `{"class":"Net::Send"}`)
	r.put("mailing", `{"class":"Two words"}`)
	r.put("mailing", "x")
	for _, test := range []struct{ token, q, want string }{
		{rootToken, "rel", "releases:"}, {rootToken, "x ti", "x timeouts:"}, {rootToken, "tube:mail,mai", "tube:mail,mail tube:mail,mailing"}, {rootToken, "a state:buried,r", "a state:buried,ready a state:buried,reserved"},
		{rootToken, "tube:mailing class:", "tube:mailing class:Net::Send"}, {rootToken, "tube:mailing class:Net:", "tube:mailing class:Net::Send"}, {rootToken, "tube:mailing state:buried class:", ""}, {rootToken, "class:", ""}, {mailerToken, "tube:mailing class:", ""},
		{mailerToken, "tube:m", "tube:mail"}, {rootToken, "", ""}, {rootToken, "a ", ""}, {rootToken, "user.id:1", ""}, {rootToken, "<b", ""},
	} {
		var got []string
		for _, m := range regexp.MustCompile(`<option value="([^"]*)">`).FindAllStringSubmatch(r.page(200, withQuery("/console/search/names", "q", test.q), r.login(test.token)), -1) {
			if m[1] != "auto" && m[1] != "light" && m[1] != "dark" {
				got = append(got, m[1])
			}
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%q: %q, want %s", test.q, got, test.want)
		}
	}
}

// TestClassesOfTube shows the classes of a tube's jobs, each with a search, to users with
// the peek right.
func TestClassesOfTube(t *testing.T) {
	r := start(t, policyOf(t), Options{})
	for range 3 {
		r.put("mail", `{"displayName":"App\\Jobs\\Send"}`)
	}
	r.put("mail", `{"task":"<b>"}`)
	text := r.page(200, "/console/tube/mail", r.login(rootToken))
	for _, want := range []string{`App\Jobs\Send <b>3</b>`, "&lt;b&gt; <b>1</b>", "in 4 jobs<"} {
		if !strings.Contains(text, want) {
			t.Errorf("without %s: %s", want, text)
		}
	}
	link := regexp.MustCompile(`href="(/console/search[^"]*)" title="oldest`).FindStringSubmatch(text)
	if link == nil {
		t.Fatal(text)
	}
	if text := r.page(200, html.UnescapeString(link[1]), r.login(rootToken)); len(jobLink.FindAllString(text, -1)) != 3 {
		t.Errorf("%s: %s", link[1], text)
	}
	if text := r.page(200, "/console/tube/mail", r.login(mailerToken)); strings.Contains(text, "Send") {
		t.Error("a user without the peek right sees classes")
	}
}
