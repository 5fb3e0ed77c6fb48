package policy

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The page and the example file contain all settings.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../doc/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../../dist/beanpole.toml")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Settings {
		if row := fmt.Sprintf("| `%s` | %s | %s | %s |\n", s.Name, s.Takes(), s.Default, s.Doc); !strings.Contains(string(page), row) {
			t.Errorf("doc/policies.md has no\n%s", row)
		}
		if !strings.Contains(string(example), "#   "+s.Name+" = ") {
			t.Errorf("dist/beanpole.toml has no %s", s.Name)
		}
	}
}
