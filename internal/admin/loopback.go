package admin

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/api"
)

// onLoopback refuses requests on loopback for a host that is neither loopback nor one of
// hosts. Otherwise, a web page whose name resolves to 127.0.0.1 (DNS rebinding) could
// read the pages through the browser of a user on this machine.
func onLoopback(h http.Handler, hosts []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		name := hostOf(r.Host)
		named := func(host string) bool { return strings.EqualFold(host, name) }
		if local != nil && local.IP.IsLoopback() && !isLoopback(name) && !slices.ContainsFunc(hosts, named) {
			why := fmt.Sprintf("the host %q is not served on loopback: use localhost, or add the name to admin-host", r.Host)
			api.Problem(http.StatusMisdirectedRequest, why).ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// hostOf returns a Host header without its port and brackets.
func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.Trim(host, "[]")
}

// isLoopback reports whether name is empty or a name of loopback.
func isLoopback(name string) bool {
	name = strings.ToLower(name)
	ip, err := netip.ParseAddr(name)
	return name == "" || name == "localhost" || strings.HasSuffix(name, ".localhost") || err == nil && ip.Unmap().IsLoopback()
}
