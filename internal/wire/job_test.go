package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

var listedJobs = []JobStats{
	{ID: 7, Pri: 1024, Age: 3, Delay: 5, TTR: 60, TimeLeft: 2, Size: 10, Reserves: 6, Timeouts: 1, Releases: 2, Buries: 4, Kicks: 8},
	{ID: 1 << 63},
}

const listedText = `---
- id: 7
  pri: 1024
  age: 3
  delay: 5
  ttr: 60
  time-left: 2
  size: 10
  reserves: 6
  timeouts: 1
  releases: 2
  buries: 4
  kicks: 8
  cursor: "40000000000.7"
- id: 9223372036854775808
  pri: 0
  age: 0
  delay: 0
  ttr: 0
  time-left: 0
  size: 0
  reserves: 0
  timeouts: 0
  releases: 0
  buries: 0
  kicks: 0
  cursor: "0.1"
`

func TestListed(t *testing.T) {
	data := AppendListedStart(nil)
	for i, cursor := range []string{"40000000000.7", "0.1"} {
		data = AppendListed(data, &listedJobs[i], []byte(cursor))
	}
	if diff := cmp.Diff(listedText, string(data)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
