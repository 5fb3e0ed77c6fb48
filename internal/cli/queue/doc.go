// Package queue contains the commands that use a server: to inspect it, to put and
// process jobs, and to manage jobs, tubes and connections.
//
// A command for one job or tube uses the protocol, and works with any beanstalk server. A
// command for a list, a pattern or many jobs uses the admin API of a beanpole. Only tubes
// and top use whichever of both is available.
//
// Each command is a function that returns a cobra.Command, and AddTo adds all. A command
// prints its result on standard output, as a table or as JSON, and notes on standard
// error.
package queue
