package wire

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func parseListed(data []byte) (jobs []ListedJob, err error) {
	err = ParseListed(data, func(j *ListedJob) {
		c := *j
		c.Cursor = bytes.Clone(j.Cursor)
		jobs = append(jobs, c)
	})
	return jobs, err
}

var listedJobs = []ListedJob{
	{ID: 7, Pri: 1024, Age: 3, Delay: 5, TTR: 60, TimeLeft: 2, Size: 10, Reserves: 6, Timeouts: 1, Releases: 2, Buries: 4, Kicks: 8, Cursor: []byte("40000000000.7")},
	{ID: 1 << 63, Cursor: []byte("0.1")},
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
	for i := range listedJobs {
		data = AppendListed(data, &listedJobs[i])
	}
	if diff := cmp.Diff(listedText, string(data)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	got, err := parseListed(data)
	if diff := cmp.Diff(listedJobs, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

// Other servers can send fewer or more fields, in another order.
func TestParseListed(t *testing.T) {
	for _, tc := range []struct {
		data string
		want []ListedJob
	}{
		{"---\n", nil},
		{"---\n- id: 1\n  pri: 2\n  age: 5\n  size: 10\n- id: 2\n", []ListedJob{{ID: 1, Pri: 2, Age: 5, Size: 10}, {ID: 2}}},
		{"---\n- size: 3\n  colour: red\n  cursor: x\n  id: 4\n", []ListedJob{{ID: 4, Size: 3, Cursor: []byte("x")}}},
	} {
		got, err := parseListed([]byte(tc.data))
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got)\n%s", tc.data, err, diff)
		}
	}
	for _, data := range []string{
		"", "- id: 1\n", "---\n  id: 1\n", "---\nid: 1\n", "---\n- id: 1", "---\n- id\n", "---\n- id: x\n", "---\n- id: -1\n", "---\n- id: \n",
		"---\n- id: 1\n pri: 1\n", "---\n- id: 18446744073709551616\n",
	} {
		if jobs, err := parseListed([]byte(data)); !errors.Is(err, ErrReply) {
			t.Errorf("%q: %+v, %v", data, jobs, err)
		}
	}
}
