package advice

import (
	"errors"
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/cluster"
)

// Member returns advice for an error about a member's directory.
func Member(dir string, err error) string {
	if errors.Is(err, cluster.ErrCopy) {
		return "move it away; another member starts with an empty directory and 'beanpole cluster join'"
	}
	return fmt.Sprintf("if a majority of the members runs, 'beanpole cluster rejoin %[1]s' gets all jobs from them; if a majority is lost for good, 'beanpole journal copy %[1]s NEW' and "+
		"'beanpole cluster init NEW --listen ADDRESS' create another cluster with the jobs of this member's journal", dir)
}
