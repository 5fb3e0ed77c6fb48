package tubes

import (
	"testing"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// Without rates, as for beanstalkd, all tubes are equal in the order by rate.
func TestNoRates(t *testing.T) {
	look := Survey{Each: func(tell func(*Tube)) error {
		tell(&Tube{Name: "b"})
		tell(&Tube{Name: "a"})
		return nil
	}}
	page, err := look.List(&admin.ListTubes{Sort: "-put_per_second", Limit: 10})
	if err != nil || len(page.Tubes) != 2 || page.Tubes[0].Name != "a" || *page.Matching != 2 {
		t.Errorf("%+v, %v", page, err)
	}
}
