package manual

import (
	"regexp"
	"strings"
)

// Settings makes sections of a configuration file that explains each of its settings in
// the comment above it. "## TITLE" begins a section.
func Settings(file string) []Section {
	setting := regexp.MustCompile(`^(# )?[a-z-]+ = `) // which may be commented out
	sections := []Section{{Title: "DESCRIPTION"}}
	for block := range strings.SplitSeq(strings.TrimSpace(file), "\n\n") {
		var text, names []string
		for line := range strings.SplitSeq(block, "\n") {
			title, isTitle := strings.CutPrefix(line, "## ")
			switch {
			case isTitle:
				sections = append(sections, Section{Title: title})
			case setting.MatchString(line):
				names = append(names, strings.TrimPrefix(line, "# "))
			default:
				text = append(text, strings.TrimPrefix(strings.TrimPrefix(line, "#"), " "))
			}
		}
		s := &sections[len(sections)-1]
		explained := strings.Join(text, "\n")
		switch {
		case len(names) > 0:
			s.Items = append(s.Items, Item{strings.Join(names, ", "), explained})
		case explained != "":
			s.Text = strings.TrimPrefix(s.Text+"\n\n"+explained, "\n\n")
		}
	}
	return sections
}
