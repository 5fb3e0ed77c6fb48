// Package interop tests the real program with real clients in other languages. It has
// tests only:
//
//	run          libraries for the protocol: the whole life of a job, beside beanstalkd
//	*_test.go    TLS and tokens: certificates good and bad, old versions, slow handshakes
//
// The tests need nothing but Go, and then talk to clients of Go only. With
// -interop.all they talk to those of all languages, which must be installed:
// "make interop LONG=1" does both.
package interop
