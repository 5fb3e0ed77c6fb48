package cliutil

import (
	"strings"
	"testing"
	"time"
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

func TestTimeLeft(t *testing.T) {
	for want, x := range map[string]struct {
		part, total uint64
		took        time.Duration
	}{
		", 30s left":   {1, 4, 10 * time.Second},
		", 2m30s left": {40, 100, 100 * time.Second},
		"":             {1, 4, time.Millisecond},
	} {
		if got := timeLeft(x.part, x.total, x.took); got != want {
			t.Errorf("%+v: %q, want %q", x, got, want)
		}
	}
	for _, unknown := range [][2]uint64{{0, 10}, {5, 0}, {10, 10}} {
		if got := timeLeft(unknown[0], unknown[1], time.Minute); got != "" {
			t.Errorf("%d of %d: %q", unknown[0], unknown[1], got)
		}
	}
}
