//go:build manual

package cli

import (
	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/cli/kit"
)

func init() {
	commandsToBuild = append(commandsToBuild, func() *cobra.Command {
		return &cobra.Command{
			Use:    "man DIR SETTINGS",
			Short:  "write the manual below a directory; SETTINGS is dist/beanpole.toml",
			Hidden: true,
			RunE: func(cmd *cobra.Command, args []string) error {
				if len(args) != 2 {
					return kit.UsageError("man needs a directory and the explained settings")
				}
				return writeManual(cmd.Root(), args[0], args[1], md2man.Render)
			},
		}
	})
}
