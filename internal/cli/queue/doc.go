// Package queue contains the commands that use a server: to inspect it, to put and
// process jobs, and to manage jobs, tubes and connections.
//
// A command for a single job or tube uses the protocol, and works with any beanstalk
// server. A command for a list, a pattern or many jobs uses the admin API of a beanpole
// server. Only tubes and top use either, depending on availability.
//
// Each command has a function that returns a cobra.Command, and AddTo adds all commands.
// A command prints its result to standard output, as a table or as JSON, and notes to
// standard error.
package queue
