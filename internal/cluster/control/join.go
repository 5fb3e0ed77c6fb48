package control

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/beanpole-mq/beanpole/internal/cluster/directory"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
)

// A joinRequest is the request of a server that has a token.
type joinRequest struct {
	Secret    string `json:"secret"`
	Listen    string `json:"listen"`
	InPlaceOf uint64 `json:"in_place_of,omitempty"`
}

// A Joined is the reply to a joinRequest.
type Joined struct {
	Cluster    string             `json:"cluster"`
	ID         uint64             `json:"id"`
	Bundle     directory.Bundle   `json:"bundle"`
	Membership raftlog.Membership `json:"membership"`
}

// Join admits a server that has a token.
func (c *Control) Join(ctx context.Context, body []byte) ([]byte, error) {
	var r joinRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("invalid request: %w", err)
	}
	if err := directory.CheckAddress(r.Listen); err != nil {
		return nil, err
	}
	if _, err := c.leader(ctx); err != nil {
		return nil, err
	}
	if err := c.Directory.Redeem(r.Secret, time.Now()); err != nil {
		return nil, err
	}
	j := Joined{Cluster: c.Directory.Cluster, ID: directory.NewID()}
	j.Bundle = c.Directory.Credentials.Issue(j.ID).Bundle()
	reply, err := c.perform(ctx, Request{Do: DoAdd, ID: j.ID, Address: r.Listen, InPlaceOf: r.InPlaceOf})
	if err != nil {
		return nil, fmt.Errorf("%w (the token is used up; create another)", err)
	}
	if err := json.Unmarshal(reply, &j.Membership); err != nil {
		return nil, fmt.Errorf("the leader's answer: %w", err)
	}
	return json.Marshal(j)
}
