package config

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/BurntSushi/toml"
)

// Print prints the settings as a configuration file that has the same effect, with
// the source of each.
func (s *Settings) Print(w io.Writer) error {
	type row struct{ setting, from string }
	var rows []row
	width := 0
	for _, name := range s.Names() {
		v := s.flags.Lookup(name).Value.(*setting).value()
		if v == nil {
			continue
		}
		text, err := toml.Marshal(map[string]any{name: v})
		if err != nil {
			return err
		}
		r := row{strings.TrimSpace(string(text)), string(cmp.Or(s.from[name], byDefault))}
		if weaker := s.hidden[name]; weaker != "" {
			r.from += "; not what " + string(weaker) + " says"
		}
		rows, width = append(rows, r), max(width, len(r.setting))
	}
	for _, r := range rows {
		if _, err := fmt.Fprintf(w, "%-*s  # %s\n", width, r.setting, r.from); err != nil {
			return err
		}
	}
	return printTables(w, s.Options.Tables)
}

// printTables prints the tables, without the hashes of tokens.
func printTables(w io.Writer, t Tables) error {
	for i := range t.Identities {
		for j := range t.Identities[i].Tokens {
			t.Identities[i].Tokens[j] = "sha256:..."
		}
	}
	text, err := toml.Marshal(t)
	if err != nil || len(text) == 0 {
		return err
	}
	_, err = fmt.Fprintf(w, "\n%s", text)
	return err
}
