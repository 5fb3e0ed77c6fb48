package cli

import (
	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

const completionLong = `Print a script that completes commands, options and names of tubes. Packages and 'make
install' install it.`

const completionExample = `  bash  source <(beanpole completion bash)          in ~/.bashrc; needs bash-completion
  zsh   source <(beanpole completion zsh)           in ~/.zshrc, below compinit
  fish  beanpole completion fish | source           in ~/.config/fish/config.fish`

// addCompletion adds cobra's command with our texts.
func addCompletion(root *cobra.Command, group string) {
	root.SetCompletionCommandGroupID(group)
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		cmd.Short = "print a completion script for bash, zsh or fish"
		cmd.Long = completionLong
		cmd.Example = completionExample
		cmd.Use = "completion SHELL"
		cliutil.Group(cmd)
		for _, shell := range cmd.Commands() {
			shell.Args = cliutil.Arguments("")
			shell.DisableFlagsInUseLine = true
			shell.Short = "print the script for " + shell.Name()
			shell.Long = ""
			shell.Example = completionExample
		}
	}
}
