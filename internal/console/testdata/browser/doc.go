// Package browser tests the console of the real program in a real browser, headless Chromium.
// It is a module of its own: its libraries are not in the server's go.mod.
//
//	go test ./...                                   pages, actions, keys, accessibility
//	go test -run Screenshots -shots ../../../../doc   writes the pictures of doc/console.md
package browser
