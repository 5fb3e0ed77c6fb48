package config

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// A Row is a setting with its value and its source.
type Row struct{ Name, Value, From string } // Value is in TOML

// Rows returns the settings that have a value, in the order of the help.
func (s *Settings) Rows() ([]Row, error) {
	var rows []Row
	for _, name := range s.Names() {
		v := s.flags.Lookup(name).Value.(*setting).value()
		if v == nil {
			continue
		}
		text, err := toml.Marshal(map[string]any{name: v})
		if err != nil {
			return nil, err
		}
		_, value, _ := strings.Cut(strings.TrimSpace(string(text)), " = ")
		rows = append(rows, Row{name, value, string(cmp.Or(s.from[name], byDefault))})
	}
	return rows, nil
}

// Print writes the settings as an equivalent configuration file, with the source of each
// setting.
func (s *Settings) Print(w io.Writer) error {
	rows, err := s.Rows()
	if err != nil {
		return err
	}
	for _, r := range rows {
		if _, err := fmt.Fprintf(w, "%s = %s # %s\n", r.Name, r.Value, r.From); err != nil {
			return err
		}
	}
	text, err := s.Options.Tables.Text()
	if err != nil || text == "" {
		return err
	}
	_, err = fmt.Fprintf(w, "\n%s", text)
	return err
}

// Text returns the tables as TOML, without the hashes of tokens.
func (t Tables) Text() (string, error) {
	t.Identities = slices.Clone(t.Identities)
	for i := range t.Identities {
		tokens := slices.Clone(t.Identities[i].Tokens)
		for j := range tokens {
			tokens[j] = "sha256:..."
		}
		t.Identities[i].Tokens = tokens
	}
	text, err := toml.Marshal(t)
	return string(text), err
}
