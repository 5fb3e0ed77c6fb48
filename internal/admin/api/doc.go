// Package api is the JSON API for those who manage a queue: what is in it, as lists,
// and verbs that change it. openapi.yaml describes it; a test holds that against the
// handlers. doc/api.md shows how it is used.
//
//	h := api.New(broker, api.Options{Server: srv, ...})
//	mux.Handle("/api/v1/", h)
//
// # A request
//
// operations.go is the table, one row an operation: its path, the right that it needs
// and on what, and its function. Serve (api.go) says who the client is, asks for the
// right, and calls the function. Within that, request.turn is the only way to the
// engine. What is long, such as a list or a move of a million jobs, takes many turns
// with a bounded amount of work each, so that it holds up nobody.
//
// # Errors
//
// Every error is a problem (RFC 9457, problem.go) with a text that says what was wrong
// and what to do.
//
// # Changes
//
// Each operation that changes something writes one line to the log (audit.go): who,
// from where, what, on what, how many, and the result; never a body or a token.
//
// # Browsers
//
// Operations that change something are refused if a browser sends them for a page of
// another origin. Package admin refuses requests by other names than those of this
// machine on loopback.
package api
