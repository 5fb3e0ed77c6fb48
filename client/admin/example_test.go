package admin_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// This example kicks jobs in the tubes with the most buried jobs.
func Example() {
	ctx := context.Background()
	c, err := admin.New("localhost:11380", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	page, err := c.ListTubes(ctx, &admin.ListTubes{Sort: "-buried", Has: "buried", Limit: 3})
	if err != nil {
		fmt.Println(err) // includes a hint
		return
	}
	for _, tube := range page.Tubes {
		state := "buried"
		task, err := c.StartTask(ctx, &admin.StartTask{OfTube: admin.OfTube{Tube: tube.Name}, Do: "kick", State: &state, Wait: 60})
		if admin.StatusOf(err) == http.StatusForbidden {
			continue
		}
		fmt.Println(tube.Name, task.Done, err)
	}
}
