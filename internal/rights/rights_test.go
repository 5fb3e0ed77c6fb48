package rights

import (
	"strings"
	"testing"
)

func TestSet(t *testing.T) {
	s, err := Parse([]string{"put", "stats"})
	if err != nil || s != Put|Stats || s.String() != "put,stats" {
		t.Errorf("put and stats: %s, %v", s, err)
	}
	if s, err := Parse([]string{"all"}); err != nil || s != All || s.String() != "put,reserve,peek,manage,stats" {
		t.Errorf("all: %s, %v", s, err)
	}
	if _, err := Parse([]string{"write"}); err == nil || !strings.Contains(err.Error(), `unknown right "write"; the rights are put, `) {
		t.Error(err)
	}
	if None.String() != "none" {
		t.Error(None.String())
	}
}
