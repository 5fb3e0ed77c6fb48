// Package kit is what the commands of the program share: their exit codes, their
// errors about a wrong command line, and how they define and read options. It does not
// know any command.
package kit
