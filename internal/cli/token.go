package cli

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/exit"
)

// newToken returns the command token.
func newToken() *cobra.Command {
	return cliutil.Group(&cobra.Command{
		Use:   "token COMMAND",
		Short: "create tokens for clients",
		Long: `Create tokens for the authentication of clients. Give the token to the client, and put its hash
into the server's configuration. The hash does not reveal the token.`,
		Example: "  beanpole token new\n  beanpole token hash < mail.token",
	},
		cliutil.NewCommand("new", "print a token of 256 random bits, and its hash", "", "  beanpole token new", "", func(cmd *cobra.Command, _ []string) error {
			token := access.NewToken()
			hash, err := access.HashOf(token)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "token: %s\nhash: %s\n", token, hash)
			return err
		}),
		cliutil.NewCommand("hash", "read a token from standard input and print its hash", "", "  beanpole token hash < mail.token", "", func(cmd *cobra.Command, _ []string) error {
			line, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
			hash, err := access.HashOf(strings.TrimRight(line, "\r\n"))
			if err != nil {
				return exit.UsageError("%s", strings.TrimPrefix(err.Error(), "access: "))
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "hash: %s\n", hash)
			return err
		}),
	)
}
