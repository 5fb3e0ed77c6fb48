package admin

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// requests contains the metrics about requests to the admin listener itself.
type requests struct {
	total   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

func newRequests() *requests {
	return &requests{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "beanpole_http_requests_total",
			Help: "Total requests to the admin listener."}, []string{"pattern", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "beanpole_http_request_seconds",
			Help:    "Duration of requests to the admin listener, from the headers to the end of the response.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9)}, []string{"pattern"}), // to half a minute
	}
}

// count counts the requests that a handler answers.
func (m *requests) count(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		began := time.Now()
		h.ServeHTTP(answer, r)
		pattern := cmp.Or(r.Pattern, "unknown") // the handler has set it
		m.seconds.WithLabelValues(pattern).Observe(time.Since(began).Seconds())
		m.total.WithLabelValues(pattern, strconv.Itoa(answer.status)).Inc()
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

// Unwrap is called by http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
