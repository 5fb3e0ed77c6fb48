// Package interop tests the real program with real clients in other languages. It
// contains only tests:
//
//	run          protocol libraries: the whole life of a job, compared with beanstalkd
//	*_test.go    TLS and tokens: certificates, old versions, slow handshakes
//
// By default the tests need only Go, and use only Go clients. With -interop.all they use
// clients in all languages, which must be installed. "make interop LONG=1" runs both
// parts.
package interop
