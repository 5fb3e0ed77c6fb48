// Package cliutil contains the code that commands share: errors, options, the connection
// to a server, tables, progress bars and questions.
package cliutil
