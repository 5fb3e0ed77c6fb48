package queue

import (
	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

// AddTo adds all commands of this package, in groups, in the order in which the help shows them.
func AddTo(root *cobra.Command) {
	cliutil.AddGroup(root, "inspect", "Inspect any server of the protocol:",
		newPing(), newTubes(), newTop(), newStats(), newJobs(), newPeek())
	cliutil.AddGroup(root, "work", "Put and process jobs:",
		newPut(), newReserve(), newWork(), newWait())
	cliutil.AddGroup(root, "repair", "Change jobs and tubes:",
		newKick(), newBury(), newRelease(), newDelete(), newPause(), newResume(), newClear(), newMove())
	cliutil.AddGroup(root, "admin", "Manage a beanpole (it needs --admin):",
		newAttention(), newPolicy(), newRedrive(), newConnections(), newFind(), newDrain(), newUndrain())
	cliutil.AddGroup(root, "copy", "Export and migrate:",
		newExport(), newImport(), newMirror())
}

// HasOption reports whether all commands have an option, by its name or letter.
func HasOption(name string) bool {
	flags := newPing().Flags()
	return flags.Lookup(name) != nil || len(name) == 1 && flags.ShorthandLookup(name) != nil
}
