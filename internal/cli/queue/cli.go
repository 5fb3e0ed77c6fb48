package queue

import (
	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

// AddTo adds the commands of this package, in groups of the help.
func AddTo(root *cobra.Command) {
	cliutil.AddGroup(root, "inspect", "Inspect any beanstalk server:",
		newPing(), newTubes(), newTop(), newStats(), newPeek())
	cliutil.AddGroup(root, "work", "Put and process jobs:",
		newPut(), newReserve(), newWork(), newWait(), newKick(), newDelete())
	cliutil.AddGroup(root, "admin", "Manage a beanpole server:",
		newAttention(), newJobs(), newFailures(), newWorking(), newConnections(), newPolicy(), newSchedule(), newPause(), newResume(), newClear(), newMove(),
		newRedrive(), newBury(), newRelease(),
		newDraining("drain", "refuse new jobs", drainLong, "draining: the server refuses new jobs", (*admin.Client).Drain),
		newDraining("undrain", "accept new jobs again", "Accept new jobs again.", "the server accepts new jobs", (*admin.Client).Undrain),
		newExport(), newImport())
}

// HasOption reports whether the commands have a connection option with this name or
// letter.
func HasOption(name string) bool {
	flags := newPing().Flags()
	return flags.Lookup(name) != nil || len(name) == 1 && flags.ShorthandLookup(name) != nil
}
