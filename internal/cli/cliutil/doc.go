// Package cliutil contains what commands share: exit codes, errors, options and their values, the
// connection to a server, tables, progress bars and questions. The server uses some of it.
package cliutil
