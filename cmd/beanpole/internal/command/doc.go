// Package command is what the commands of the program share: the codes that they
// exit with, what they say of a wrong command line, and how they define and read
// options. It knows no command.
package command
