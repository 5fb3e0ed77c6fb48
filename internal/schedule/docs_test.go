package schedule

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The page and the example file contain all settings.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../doc/schedules.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../../dist/beanpole.toml")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Settings {
		doc := s.Doc
		if s.Words != nil {
			doc = "`" + strings.Join(s.Words, "`, `") + "`. " + doc
		}
		if row := fmt.Sprintf("| `%s` | %s | %s |\n", s.Name, s.Default, doc); !strings.Contains(string(page), row) {
			t.Errorf("doc/schedules.md has no\n%s", row)
		}
		if !strings.Contains(string(example), "#   "+s.Name+" = ") {
			t.Errorf("dist/beanpole.toml has no %s", s.Name)
		}
	}
}
