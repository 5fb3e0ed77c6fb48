package cli

import "github.com/spf13/cobra"

// Commands returns all commands of this package.
func Commands() []*cobra.Command {
	commands := []*cobra.Command{
		newPut(), newReserve(), newPeek(), newDelete(), newBury(), newKick(), newRelease(), newTouch(),
		newStats(), newTubes(), newPause(), newResume(), newWait(), newPing(), newTop(), newClear(),
		newExport(), newImport(), newWork(), newJobs(), newMove(), newMirror(),
	}
	for _, c := range commands {
		if c.Flags().Lookup("tube") != nil {
			c.RegisterFlagCompletionFunc("tube", completeTubes) // fails for a flag that is not there
		}
	}
	return commands
}
