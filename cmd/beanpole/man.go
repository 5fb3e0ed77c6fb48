package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/beanpole-mq/beanpole/cmd/beanpole/internal/command"
)

// newMan is for those who make packages: it writes the manual from the help.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "write the manual pages into a directory",
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return command.UsageError("man needs one directory")
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil { // #nosec G301 -- manuals are for everybody
				return fmt.Errorf("man: %w", err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // the same source gives the same pages
			header := &doc.GenManHeader{Section: "1", Source: "beanpole " + version(), Manual: "beanpole"}
			return doc.GenManTree(root, header, args[0])
		},
	}
}
