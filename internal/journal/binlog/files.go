package binlog

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// prefix is the start of each file's name; the number follows.
const prefix = "binlog."

// Files returns the names of beanstalkd's files in a directory, without the path, in the
// order in which they were written. The files can be without jobs, because beanstalkd
// always leaves a file.
func Files(fsys vfs.FS, dir string) ([]string, error) {
	nums, err := list(fsys, dir)
	names := make([]string, len(nums))
	for i, n := range nums {
		names[i] = fileName(n)
	}
	return names, err
}

func fileName(num int) string { return prefix + strconv.Itoa(num) }

// list returns the numbers of the files, ascending. It ignores names such as binlog.007:
// beanstalkd would open binlog.7.
func list(fsys vfs.FS, dir string) (nums []int, err error) {
	names, err := fsys.List(dir)
	if err != nil {
		return nil, fmt.Errorf("binlog: %w", err)
	}
	for _, name := range names {
		n, err := strconv.Atoi(strings.TrimPrefix(name, prefix))
		if err == nil && n >= 0 && n <= math.MaxInt32 && fileName(n) == name {
			nums = append(nums, n)
		}
	}
	slices.Sort(nums)
	return nums, nil
}
