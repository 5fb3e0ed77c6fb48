package cli

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/cli/kit"
)

// newToken is the command token.
func newToken() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "make tokens for clients",
		Long: `Make tokens, by which clients say who they are. A client gets the token; the
configuration of the server gets its hash, from which nobody can find the token.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return kit.UnknownArgument(cmd, args)
			}
			return kit.UsageError("want a command: new or hash (see: beanpole token --help)")
		},
	}
	cmd.AddCommand(
		&cobra.Command{
			Use:   "new",
			Short: "make a token of 256 random bits, and its hash",
			Args:  kit.NoArguments,
			RunE: func(cmd *cobra.Command, _ []string) error {
				token := access.NewToken()
				hash, err := access.HashOf(token)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "token: %s\nhash: %s\n", token, hash)
				return err
			},
		},
		&cobra.Command{
			Use:   "hash",
			Short: "read a token from standard input and print its hash",
			Args:  kit.NoArguments,
			RunE: func(cmd *cobra.Command, _ []string) error {
				line, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
				hash, err := access.HashOf(strings.TrimRight(line, "\r\n"))
				if err != nil {
					return kit.UsageError("%s", strings.TrimPrefix(err.Error(), "access: "))
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "hash: %s\n", hash)
				return err
			},
		},
	)
	return cmd
}
