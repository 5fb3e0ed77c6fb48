// Package queue has the commands for a person at the keyboard: to look at a server,
// to put and take jobs, and to repair what is stuck. They work with any server of the
// beanstalk protocol, and use the additional commands of beanpole where the server has them.
//
// Each command is a function that returns a cobra.Command; Commands has them all. A
// command gets a session: where the server is, where to write, and in which form. It
// prints what it has found on standard output, in columns for people or as JSON for
// programs, one object or one line each, and nothing else; notes go to standard error.
//
// # Exit codes
//
//	  0  done
//	  1  it went wrong; the line on standard error says how
//	  2  what was asked for is not there: no such job or tube, no job in time
//	  3  the server cannot be reached, or the connection was lost
//	  4  the server refuses: the token is missing, or wrong, or does not allow this
//	  5  the command line is wrong
//	130  it was interrupted by a signal
package queue
