// Package admin serves HTTP to monitor a server: metrics for Prometheus, health for load
// balancers and orchestrators, and profiles to find out what is slow.
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
// The figures are collected on request, in a turn of the broker. Those of the tubes take
// some more turns, each of which looks at a few hundred tubes, so that no client has to
// wait for long. At most Options.Tubes tubes have metrics.
package admin
