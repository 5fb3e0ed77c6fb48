package wire

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// For any length of a list, the size in the reply line equals the size of the data.
func TestAppendList(t *testing.T) {
	for _, n := range []int{0, 1, 2, 100, 10000} {
		var names []string
		var list strings.Builder // a string would be copied at each append
		list.WriteString("---\n")
		for i := range n {
			names = append(names, fmt.Sprint("tube-", i))
			list.WriteString("- " + names[i] + "\n")
		}
		data := list.String()
		got := appendList([]byte("before"), names)
		if want := "before" + okReply(data); string(got) != want {
			t.Errorf("%d names: %.60q, want %.60q", n, got, want)
		}
		var r Reply
		if _, err := ParseReply(got[len("before"):], &r); err != nil {
			t.Fatal(err)
		}
		parsed, err := ParseList(r.Body)
		if err != nil || !slices.Equal(parsed, names) {
			t.Errorf("%d names: parsed %.60q, %v", n, parsed, err)
		}
	}
}

func appendList(dst []byte, names []string) []byte {
	dst = AppendListStart(dst, len(names), len(strings.Join(names, "")))
	for _, name := range names {
		dst = AppendListItem(dst, name)
	}
	return AppendDataEnd(dst)
}

func TestParseDict(t *testing.T) {
	for _, tc := range []struct {
		data string
		want map[string]string
	}{
		{"---\n", map[string]string{}},
		{"---\npid: 7\nversion: \"1.13\"\nos: #1 SMP: x\n", map[string]string{"pid": "7", "version": "1.13", "os": "#1 SMP: x"}},
		{"---\nname: default\ntime-left: -1\nempty: \nquotes: \"\"\n", map[string]string{
			"name": "default", "time-left": "-1", "empty": "", "quotes": ""}},
		{"---\na: \"\nb: \"x\nc: \"\"x\"\"\nd: \"a: b\"\n", map[string]string{
			"a": `"`, "b": `"x`, "c": `"x"`, "d": "a: b"}},
	} {
		got, err := ParseDict([]byte(tc.data))
		if err != nil {
			t.Errorf("%q: %v", tc.data, err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%q: (-want +got)\n%s", tc.data, diff)
		}
	}
	got, err := ParseDict(dictOf(t, AppendStats(nil, &ServerStats{Hostname: "vm"})))
	if err != nil || len(got) != 51 || got["version"] != "1.13" || got["hostname"] != "vm" || got["draining"] != "false" {
		t.Errorf("stats: %v, %v", got, err)
	}
}

func dictOf(t *testing.T, reply []byte) []byte {
	t.Helper()
	var r Reply
	if n, err := ParseReply(reply, &r); n != len(reply) || err != nil || r.Kind != OK {
		t.Fatalf("%q: %d, %v", reply, n, err)
	}
	return r.Body
}

func TestParseYAMLErrors(t *testing.T) {
	for _, data := range []string{"", "--", "---", "pid: 7\n", "---\npid: 7", "---\npid\n", "---\npid:7\n", "---\n: 7\n", "---\n\n"} {
		if got, err := ParseDict([]byte(data)); !errors.Is(err, ErrReply) {
			t.Errorf("ParseDict(%q) = %v, %v", data, got, err)
		}
	}
	for _, data := range []string{"", "---", "- a\n", "---\n- a", "---\na\n", "---\n-a\n", "---\n\n"} {
		if got, err := ParseList([]byte(data)); !errors.Is(err, ErrReply) {
			t.Errorf("ParseList(%q) = %v, %v", data, got, err)
		}
	}
	if got, err := ParseList([]byte("---\n- \"a\"\n- b\n")); err != nil || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("a list with quotes: %q, %v", got, err)
	}
}
