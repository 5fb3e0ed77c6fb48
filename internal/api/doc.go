// Package api is the JSON API for managing a queue: it lists what is in the queue, and has
// verbs that change it. openapi.yaml describes it; it is written from the table of
// operations. doc/api.md shows how it is used.
//
//	h := api.New(broker, api.Options{Server: srv, ...})
//	mux.Handle("/api/v1/", h)
//
// # A request
//
// operations.go is the table, one row for each operation: its path, the right that it
// needs and on what, and its function. Its input and its answer are types of package client/admin, where the comments
// say what there is to say of it. request.run (request.go) reads and checks the input, checks the
// right, calls the function, and writes the audit; a request comes to it by HTTP (serve.go), or from the console by API.Open (local.go).
// An operation that runs elsewhere goes there by an admin.Transport: a member that does not lead passes it on to the leader (leader.go),
// and other servers are beanpoles (upstream.go).
// Within the function, request.turn is the only way to the engine. A long operation, such as a list or a move of a million jobs, takes many turns
// with a bounded amount of work each, so that it does not delay clients. If the broker is
// given another engine in between, it ends with an error (request.turn).
//
// # Errors
//
// Every error is a problem (RFC 9457, problem.go) with a text that says what was wrong
// and what to do.
//
// # Changes
//
// Each operation that changes something writes one line to the log (package audit), with the
// identity, the address, the operation, its object, the number of jobs, and the result. The
// line never has a body or a token.
//
// # Browsers
//
// Operations that change something are refused if a browser sends them for a page of
// another origin. On loopback, package admin refuses requests for any host name that is
// not one of this machine.
package api
