// Package queue has the commands for a person at the keyboard: to look at a server,
// to put and take jobs, and to repair what is stuck. They work with any server of the
// beanstalk protocol, and use the additional commands of beanpole where the server has them.
//
// Each command is a function that returns a cobra.Command; Commands has them all. A
// command gets a session: where the server is, where to write, and in which form. It
// prints what it has found on standard output, in columns for people or as JSON for
// programs, one object or one line each, and nothing else; notes go to standard error.
package queue
