// Command clientbench measures the Go client beside github.com/beanstalkd/go-beanstalk
// and beside bare sockets: jobs per second and allocations per job, of puts and
// reserves, one at a time and in batches; and the worker's jobs per second.
//
//	cd bench/client && go run . -server beanpole -server beanstalkd
//
// Each server program is started on a free port, without a log. Contenders take
// turns within a round, and what is printed are the medians of the rounds, as
// Markdown. It is a module of its own so that beanpole does not depend on the
// client that it is measured against.
package main
