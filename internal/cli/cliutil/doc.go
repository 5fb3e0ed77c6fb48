// Package cliutil is what the commands of the program share, and the server where it speaks to the
// same people: exit codes, errors of the command line, options and their values, the
// connection to a server, tables, the bar of progress, and questions. It does not know any
// command.
package cliutil
