package manual

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPage(t *testing.T) {
	p := Page{
		Name: "x-y", Section: 1, Short: "does it", Version: "1.2", Synopsis: []string{"x y [-a]"},
		Sections: []Section{
			{Title: "DESCRIPTION", Text: "One \\ two.\n.three\n\nFour:\n  verbatim  'x'\nend"},
			{Title: "More", Items: []Item{{"-a", "all"}}},
		},
	}
	var b strings.Builder
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	want := `.TH "X\-Y" 1 "" "beanpole 1.2" "beanpole manual"
.nh
.ad l
.SH NAME
x\-y \- does it
.SH SYNOPSIS
.nf
x y [\-a]
.fi
.SH DESCRIPTION
One \e two.
\&.three
.sp
Four:
.nf
  verbatim  \(aqx\(aq
.fi
end
.SS More
.TP
\fB\-a\fR
all
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestSettings(t *testing.T) {
	got := Settings(`# The file.
#
#   command FILE

## Limits

# How many.
# many = 7

# Both.
# one = "a"
# two = "b"

# A table.
#
#   [[table]]
`)
	want := []Section{
		{Title: "DESCRIPTION", Text: "The file.\n\n  command FILE"},
		{Title: "Limits", Text: "A table.\n\n  [[table]]", Items: []Item{{"many = 7", "How many."}, {`one = "a", two = "b"`, "Both."}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
