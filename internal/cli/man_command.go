//go:build manual

package cli

import (
	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

// addManual adds the command that writes the manual, which only those need who build packages.
func addManual(root *cobra.Command) {
	root.AddCommand(&cobra.Command{
		Use:    "man DIR SETTINGS",
		Short:  "write the manual below a directory; SETTINGS is dist/beanpole.toml",
		Hidden: true,
		Args:   cliutil.Arguments("DIR SETTINGS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return writeManual(cmd.Root(), args[0], args[1], md2man.Render)
		},
	})
}
