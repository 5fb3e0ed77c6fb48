// Package admin serves HTTP for monitoring: metrics for Prometheus, health checks for
// load balancers and orchestrators, and CPU and memory profiles.
//
//	h := admin.New(broker, admin.Options{...})
//	http.Serve(listener, h)
//
// # Paths
//
//	/metrics       metrics in the format of Prometheus
//	/healthz       200 as long as the process answers
//	/readyz        200 if clients can use the queue; otherwise 503 and the reason
//	/debug/pprof/  profiles, if Options.Profiles is set
//	/console/      pages for a browser: package console
//	/api/v1/       a JSON API to read and change the queue: package api
//
// A request collects the metrics in a turn of the broker. Tubes take more turns of a few
// hundred tubes each, so that clients do not wait. At most Options.Tubes tubes have
// metrics.
package admin
