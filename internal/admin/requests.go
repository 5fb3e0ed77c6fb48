package admin

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/beanpole-mq/beanpole/internal/api"
)

// requests are the metrics of the requests to the admin listener itself.
type requests struct {
	total   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	refused *prometheus.CounterVec
}

const (
	profilesPath = "/debug/pprof/"
	consolePath  = "/console/"
	noOperation  = "unknown"
)

// operationOf returns the operation of an answered request.
func operationOf(r *http.Request) string {
	_, path, _ := strings.Cut(r.Pattern, " ")
	switch {
	case path == "/{$}":
		return "index"
	case path == "/metrics", path == "/healthz", path == "/readyz":
		return path[1:]
	case path == api.Prefix+"/openapi.yaml":
		return "openapi"
	case strings.HasPrefix(path, profilesPath):
		return "profile"
	case path == consolePath+"events":
		return "console stream"
	case strings.HasPrefix(path, consolePath), strings.HasPrefix(r.Pattern, consolePath):
		return "console"
	}
	if id, ok := api.OperationOf(r.Pattern); ok {
		return id
	}
	return noOperation
}

// refusedReasons are the reasons of refusals, by status.
var refusedReasons = map[int]string{
	http.StatusUnauthorized:       "unknown client",
	http.StatusForbidden:          "not allowed",
	http.StatusMisdirectedRequest: "other host",
}

func newRequests() *requests {
	m := &requests{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "beanpole_http_requests_total",
			Help: "Total requests to the admin listener."}, []string{"operation", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "beanpole_http_request_seconds",
			Help:    "Duration of requests to the admin listener, from the headers to the end of the response.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9)}, []string{"operation"}), // to half a minute
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "beanpole_http_requests_refused_total",
			Help: "Total requests to the admin listener that were refused."}, []string{"reason"}),
	}
	for _, reason := range refusedReasons { // from zero, so that the first refusal counts
		m.refused.WithLabelValues(reason)
	}
	return m
}

// count counts the requests that a handler answers.
func (m *requests) count(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		began := time.Now()
		h.ServeHTTP(answer, r)
		operation := operationOf(r) // known after the handler has run
		m.seconds.WithLabelValues(operation).Observe(time.Since(began).Seconds())
		m.total.WithLabelValues(operation, fmt.Sprintf("%dxx", answer.status/100)).Inc()
		if reason, ok := refusedReasons[answer.status]; ok {
			m.refused.WithLabelValues(reason).Inc()
		}
	})
}

// A statusWriter records the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
