// Package console is the web console: pages for a browser to look at a queue and to manage it.
//
//	operations := admin.New(broker, admin.Options{Identify: sessions.Identify(identify), ...})
//	pages := console.New(operations, console.Options{Sessions: sessions, Identify: ...})
//	mux.Handle(console.Prefix, pages)
//
// # A page
//
// Each page is a function that asks the JSON API and fills a template of the folder templates.
// The console has no other way to the queue: client.go hands requests to the handler of the API
// within the process, with what identifies the browser's user. So the rights and the audit of both are
// the same, and everything that the console shows or does can be done with curl; each page shows the command.
//
// Pages work without JavaScript. Every filter is in the URL. Every change is a POST, and
// a page of its own asks for confirmation first (actions.go is the table).
//
// # Live values
//
// A template marks values that may change with Live and Line (page.go). Once a second a
// stream (live.go) renders the page that is open in a browser, and sends the texts that
// have changed: never HTML, and never the body of a job. static/console.js puts them in their places.
//
// # Safety
//
// Templates escape everything; but for cells, which cell.written escapes, and small charts, nothing here makes HTML of strings. The Content-Security-Policy
// permits files of this console only, and nothing inline. Requests that change something are refused if a page of another
// origin sends them. A session (session.go) stands for the token that somebody has logged in with.
//
// Start reading at console.go.
package console
