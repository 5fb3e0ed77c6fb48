// Package client is a client for beanpole, beanstalkd and other servers of the
// beanstalk protocol.
package client
