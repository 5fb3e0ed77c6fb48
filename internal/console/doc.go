// Package console is the web console, which shows and manages a queue in a browser.
//
//	operations := admin.New(broker, admin.Options{Identify: sessions.Identify(identify), ...})
//	pages := console.New(operations, console.Options{Sessions: sessions, Identify: ...})
//	mux.Handle(console.Prefix, pages)
//
// # A page
//
// Each page is a function that calls the JSON API and fills a template. The console has
// no other access to the queue: client.go passes requests to the API within the process,
// with the credentials of the browser's user. So both have the same rights and the same
// audit.
//
// Pages work without JavaScript. Every filter is in the URL. Every change is a POST, and
// a separate page asks for confirmation first (actions.go has the table).
//
// # Live values
//
// A template marks values that can change with Live and Line (page.go). Once a second, a
// stream (live.go) renders the open page and sends the changed texts: never HTML, and
// never the body of a job. static/console.js replaces them in the page.
//
// # Safety
//
// Templates escape everything. Only cells, which cell.written escapes, and small charts
// are built as HTML. The Content-Security-Policy permits files of this console only, and
// nothing inline. Changes are refused if a page of another origin sends them. A session
// (session.go) represents the token of a login.
//
// Start reading at console.go.
package console
