// Package admin serves HTTP to those who watch a server: metrics for Prometheus,
// health for load balancers and orchestrators, and profiles for whoever looks for
// what is slow.
//
//	h := admin.New(broker, admin.Options{...})
//	http.Serve(listener, h)
//
// # Paths
//
//	/metrics       figures in the format of Prometheus
//	/healthz       200 as long as the process answers
//	/readyz        200 if clients can use the queue; else 503 and why they cannot
//	/debug/pprof/  profiles, if Options.Profiles is set
//	/console/      pages for a browser: package console
//	/api/v1/       what is in the queue, and verbs that change it: package api
//
// The figures are collected when they are asked for, in a turn of the broker, and some more
// for the tubes: each looks at a few hundred of them, so that no client has to wait for long.
// There are metrics of Options.Tubes tubes at most.
package admin
