package cliutil

import (
	"strings"
	"testing"
)

func TestTableFits(t *testing.T) {
	rows := [][]any{{"a-tube-with-a-long-name", 1, "übergrößen"}, {"b", uint64(123456), "x"}}
	for most, want := range map[int]string{
		0:  "TUBE                      READY  BODY\na-tube-with-a-long-name       1  übergrößen\nb                        123456  x",
		40: "TUBE                      READY  BODY\na-tube-with-a-long-name       1  übergr…\nb                        123456  x",
		24: "TUBE         READY  BODY\na-tube-wi…       1  übe…\nb           123456  x",
		10: "TUBE     R\na-tub…\nb       12",
	} {
		if got := strings.Join(tableLines("TUBE:6 READY BODY:4", rows, most), "\n"); got != want {
			t.Errorf("in %d columns:\n%s\nwant:\n%s", most, got, want)
		}
	}
}
