package queue

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// The server selects connections by watched tube, because it lists only the first hundred
// watched tubes of a connection.
func TestConnectionsAskTheServer(t *testing.T) {
	var asked string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Query().Get("tube")
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"connections":[{"id":9,"address":"10.0.0.2:1","watching":["a"]},{"id":7,"address":"10.0.0.1:1","watching":["a"]}]}`))
	}))
	defer s.Close()
	f := connectionFilter{tubes: []string{"z*", "mail"}, address: "10.0.0.1:"}
	found, err := f.find(t.Context(), admin.On(&admin.HTTP{URL: s.URL}))
	if err != nil || len(found) != 1 || found[0].ID != 7 || asked != "z*,mail" {
		t.Errorf("asked for %q, found %+v, %v", asked, found, err)
	}
}
