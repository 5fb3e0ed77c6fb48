// Command beanpole is a work queue server that speaks the beanstalk protocol,
// its command-line tool and its load generator.
//
//	beanpole [options]              run the server; beanstalkd's options work unchanged
//	beanpole serve [options]        the same
//	beanpole config check|print     check or show the server's configuration
//	beanpole put|peek|tubes|...     for a person at the keyboard: see package cli
//	beanpole token new|hash         make tokens for clients
//	beanpole journal COMMAND DIR    check, dump, repair or export a journal
//	beanpole bench [options]        measure a server, or compare two
//	beanpole version                what this binary was built from
//	beanpole help [command]
//
// This package turns options into the Options of the packages under internal,
// puts the pieces together, and turns what comes of it into an exit code.
// It is the only place that knows of flags, environment variables, signals
// and users; it decides nothing about jobs. There is one file for each
// subcommand; start reading at serve.go.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/cli"
)

// Exit codes. Those that beanstalkd has too are the same.
const (
	exitFailure   = 1
	exitUsage     = 5
	exitJournal   = 10  // the journal's directory cannot be used
	exitLookup    = 32  // looking up the user of -u failed
	exitNoUser    = 33  // the user of -u does not exist
	exitPrivilege = 34  // becoming the user of -u failed
	exitSocket    = 111 // a socket cannot be set up
)

// An exitError ends the program with a code of its own.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }
func (e *exitError) ExitCode() int { return e.code }

func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

func main() {
	os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Main runs the program with the arguments after its name and returns its exit
// code. A failure is one line on stderr that begins with "beanpole: ".
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(withCommand(args))
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "beanpole: %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
	if exit, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err); ok {
		return exit.ExitCode()
	}
	return exitFailure
}

// withCommand makes the bare command line, which is beanstalkd's, that of
// serve.
func withCommand(args []string) []string {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") && args[0] != "--help" {
		return append([]string{"serve"}, args...)
	}
	return args
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "beanpole",
		Short: "a work queue server that speaks the beanstalk protocol",
		Args:  cobra.ArbitraryArgs, // RunE says what is wrong with them
		RunE: func(cmd *cobra.Command, args []string) error {
			return unknownArgument(cmd, args)
		},
		// So that "beanpole bogus -p 1" complains of bogus, not of -p.
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		SilenceErrors:      true,
		SilenceUsage:       true,
	}
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(printHelp)
	const server = "server"
	root.AddGroup(&cobra.Group{ID: server, Title: "Run a server:"})
	for _, cmd := range []*cobra.Command{newServe(), newConfig(), newToken(), newJournal(), newBench(), newVersion()} {
		cmd.GroupID = server
		root.AddCommand(cmd)
	}
	root.SetCompletionCommandGroupID(server)
	root.AddGroup(cli.Groups()...)
	root.AddCommand(cli.Commands()...)
	root.AddCommand(newMan())
	root.SetHelpCommand(newHelp(root))
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Short = "print what completes commands in bash, zsh or fish"
		}
	}
	return root
}

// noArguments is for commands that take options only.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return unknownArgument(cmd, args)
}

func unknownArgument(cmd *cobra.Command, args []string) error {
	if near := nearest(cmd, args[0]); near != "" {
		return usageError("unknown argument %q; did you mean %q? (see: %s --help)", args[0], near, cmd.CommandPath())
	}
	return usageError("unknown argument %q (see: %s --help)", args[0], cmd.CommandPath())
}

// nearest returns the subcommand that a wrong name was meant to be, or "".
func nearest(cmd *cobra.Command, wrong string) string {
	for letters := range 2 { // wrong or missing
		cmd.SuggestionsMinimumDistance = letters + 1
		if near := cmd.SuggestionsFor(wrong); len(near) > 0 {
			return near[0]
		}
	}
	return ""
}
