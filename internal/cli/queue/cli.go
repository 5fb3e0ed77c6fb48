package queue

import (
	"github.com/spf13/cobra"
)

// Commands returns all commands of this package, in the groups of Groups.
func Commands() []*cobra.Command {
	var all []*cobra.Command
	for _, g := range groups {
		for _, c := range g.commands() {
			c.GroupID = g.ID
			all = append(all, c)
		}
	}
	return all
}

// HasOption reports whether all commands have an option, by its name or letter.
func HasOption(name string) bool {
	flags := newPing().Flags()
	return flags.Lookup(name) != nil || len(name) == 1 && flags.ShorthandLookup(name) != nil
}

// Groups returns the groups of the commands, with their titles.
func Groups() []*cobra.Group {
	var all []*cobra.Group
	for _, g := range groups {
		all = append(all, &g.Group)
	}
	return all
}

// groups are the commands in the order in which the help shows them.
var groups = []struct {
	cobra.Group
	commands func() []*cobra.Command
}{
	{cobra.Group{ID: "inspect", Title: "Inspect any server of the protocol:"}, func() []*cobra.Command {
		return []*cobra.Command{newPing(), newTubes(), newTop(), newStats(), newJobs(), newPeek()}
	}},
	{cobra.Group{ID: "work", Title: "Put and process jobs:"}, func() []*cobra.Command {
		return []*cobra.Command{newPut(), newReserve(), newWork(), newWait()}
	}},
	{cobra.Group{ID: "repair", Title: "Change jobs and tubes:"}, func() []*cobra.Command {
		return []*cobra.Command{newKick(), newBury(), newRelease(), newDelete(), newPause(), newResume(), newClear(), newMove()}
	}},
	{cobra.Group{ID: "admin", Title: "Manage a beanpole (it needs --admin):"}, func() []*cobra.Command {
		return []*cobra.Command{newPolicy(), newRedrive(), newConnections(), newFind(), newDrain(), newUndrain()}
	}},
	{cobra.Group{ID: "copy", Title: "Export and migrate:"}, func() []*cobra.Command {
		return []*cobra.Command{newExport(), newImport(), newMirror()}
	}},
}
