// Package browser tests the console of the real program in headless Chromium. It is a
// separate module, so that its libraries are not in the server's go.mod.
//
//	go test ./...                                   pages, every action, keys, accessibility, slow networks, TLS, clusters
//	go test ./... -axe                              the same; it fails if axe-core cannot be downloaded
//	BEANPOLE_LONG=1 go test -run Million -v ./...   the same pages with a million jobs in 10,000 tubes, and a search over them
//	go test -run Screenshots -shots ../../../../doc   writes the pictures of doc/console.md
package browser
