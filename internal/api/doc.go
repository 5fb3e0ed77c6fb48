// Package api is the JSON API for inspecting and managing a queue. openapi.yaml describes
// the API; a test generates it from the table of operations. doc/api.md is the guide.
//
//	h := api.New(broker, api.Options{Server: srv, ...})
//	mux.Handle("/api/v1/", h)
//
// # A request
//
// operations.go is the table. Each operation has a row with its path, the right that it
// needs, and its function. Package client/admin has the types of its input and its
// result, with their descriptions. request.run (request.go) parses and checks the input,
// checks the rights, calls the function, and writes the audit entry. Requests arrive over
// HTTP (serve.go), or from the console through API.Open (local.go). An admin.Transport
// carries an operation to another server: a member forwards it to the leader (leader.go),
// and the console can show other beanpole servers (upstream.go).
//
// In the function, only request.turn gives access to the engine. A long operation, such
// as a move of a million jobs, takes many turns with a limited amount of work each, so
// that it does not delay clients. If the broker gets another engine between two turns,
// the operation fails.
//
// # Errors
//
// Every error is a problem (RFC 9457, problem.go). Its text states the cause and a
// remedy.
//
// # Changes
//
// Each operation that makes changes writes one line to the log (package audit), with the
// identity, the address, the operation, its object, the number of jobs, and the result.
// The line never contains a body or a token.
//
// # Browsers
//
// The server refuses changes that a browser sends for a page of another origin. On
// loopback, package admin refuses requests for host names that do not belong to this
// machine.
package api
