package admin

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/api"
)

// onLoopback refuses requests that come in on loopback for another name than one of
// loopback. The owner of a web page can let a name of his lead to 127.0.0.1; the browser
// of somebody who works on this machine would then show him what is here (DNS
// rebinding), for it takes that for the same origin.
func onLoopback(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		if local != nil && local.IP.IsLoopback() && !isLoopback(r.Host) {
			why := fmt.Sprintf("%q is not a name of this machine: ask for localhost or 127.0.0.1", r.Host)
			api.Problem(http.StatusMisdirectedRequest, why).ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// isLoopback reports whether a Host header names loopback, or nothing.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	ip, err := netip.ParseAddr(host)
	return host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && ip.Unmap().IsLoopback()
}
