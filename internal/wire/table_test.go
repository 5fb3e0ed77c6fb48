package wire

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/rights"
)

func TestTable(t *testing.T) {
	for op := Unknown + 1; op < NumOps; op++ {
		row := commands[op]
		if row.verb == "" {
			t.Errorf("op %d has no row", op)
			continue
		}
		if want := strings.TrimSuffix(row.verb, " "); op.String() != want {
			t.Errorf("%q prints as %q", want, op)
		}
		if got, i := recognize([]byte(row.verb)); got != op || i != len(row.verb) {
			t.Errorf("recognize(%q) = %v, %d", row.verb, got, i)
		}
		if short, ok := strings.CutSuffix(row.verb, " "); ok {
			if got, _ := recognize([]byte(short)); got == op {
				t.Errorf("%q is recognized without its space", short)
			}
		}
		shown := slices.Contains(counterOrder[:], op) || slices.Contains(OwnCounters, op)
		if hasCounter := row.counter != ""; hasCounter != shown {
			t.Errorf("%v: counter %q, shown in stats: %v", op, row.counter, shown)
		}
		if row.counter != "" && row.counter != "cmd-"+op.String() {
			t.Errorf("%v: counter %q", op, row.counter)
		}
	}
}

func TestRecognizeUnknown(t *testing.T) {
	for _, line := range []string{"", "p", "put", "Put ", "list-tub", "zzz", "\xff"} {
		if op, _ := recognize([]byte(line)); op != Unknown {
			t.Errorf("%q is %v", line, op)
		}
	}
}

func TestValidTube(t *testing.T) {
	for name, want := range map[string]bool{
		"default": true, "1": true, "0.5": true, ";": true, "/": true, "(": true, "A-Z+/;.$_()": true, "a-": true,
		strings.Repeat("x", 200): true,
		"":                       false, "-": false, "-a": false, "a b": false, "a\x00": false, "a,b": false, "é": false, "a\n": false,
		strings.Repeat("x", 201): false,
	} {
		if got := ValidTube([]byte(name)); got != want {
			t.Errorf("ValidTube(%q) = %v", name, got)
		}
	}
	n := 0
	for c := range 256 {
		if ValidTube([]byte{'a', byte(c)}) {
			n++
		}
	}
	if want := 26 + 26 + 10 + len("-+/;.$_()"); n != want {
		t.Errorf("%d bytes are name characters, want %d", n, want)
	}
}

// The table must state the required rights of each command, because a command without
// rights is always refused.
func TestNeeds(t *testing.T) {
	for op := range NumOps {
		if op.Need().Place == rights.Unstated {
			t.Errorf("%v does not state its required rights", op)
		}
	}
}

// doc/security.md lists the required right of each command.
func TestRightsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../doc/security.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[Op]rights.Set)
	var set rights.Set
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		switch right := strings.Trim(cells[1], " `"); {
		case right == "":
		case right == "none":
			set = rights.None
		default:
			set = rights.None
			for _, word := range strings.FieldsFunc(strings.TrimPrefix(right, "one of"), func(r rune) bool { return r == ',' || r == ' ' }) {
				one, err := rights.Parse([]string{word})
				if err != nil {
					set = rights.None
					break
				}
				set |= one
			}
		}
		for _, verb := range strings.FieldsFunc(cells[2], func(r rune) bool { return r == ',' || r == ' ' }) {
			if op, _ := recognize([]byte(verb + " ")); op.String() == verb {
				documented[op] |= set
			}
		}
	}
	for op := Unknown + 1; op < NumOps; op++ {
		if got, ok := documented[op]; !ok || got != op.Need().Rights {
			t.Errorf("doc/security.md lists %v with %v (%v), the table with %v", op, got, ok, op.Need().Rights)
		}
	}
}

// doc/protocol.md has a section and the counter of each command, and a transcript
// contains the command.
func TestCommandsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../doc/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	headings := ""
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "### ") {
			headings += strings.ReplaceAll(line, ",", " ")
		}
	}
	transcripts, err := filepath.Glob("../test/conformance/testdata/*.txt")
	if err != nil || len(transcripts) == 0 {
		t.Fatal(transcripts, err)
	}
	given := ""
	for _, name := range transcripts {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		given += strings.ReplaceAll(string(text), "\n", " \n")
	}
	for op := Unknown + 1; op < NumOps; op++ {
		if op != Auth { // doc/security.md describes it
			if !slices.Contains(strings.Fields(headings), op.String()) {
				t.Errorf("doc/protocol.md has no section on %v", op)
			}
			if !strings.Contains(given, "> "+op.String()+" ") {
				t.Errorf("no transcript sends %v", op)
			}
		}
		if key := op.Counter(); key != "" && !strings.Contains(string(page), "`"+key+"`") && !strings.Contains(string(page), "`"+strings.TrimPrefix(key, "cmd")+"`") {
			t.Errorf("doc/protocol.md lacks the counter %s", key)
		}
	}
}
