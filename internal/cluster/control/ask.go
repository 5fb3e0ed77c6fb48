package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/cluster/directory"
	"github.com/beanpole-mq/beanpole/internal/cluster/transport"
)

// Ask sends a request to the directory's own member. If that member is not running, or
// stops before it answers, Ask tries the other members whose addresses the directory
// contains.
func Ask[Reply any](ctx context.Context, d *directory.Directory, r Request) (reply Reply, err error) {
	var why []string
	for _, addr := range slices.Compact(append([]string{d.Listen}, d.Contacts...)) {
		body, err := json.Marshal(r)
		if err != nil {
			return reply, err
		}
		text, err := transport.Request(ctx, d.Credentials, addr, 0, body)
		if _, answered := errors.AsType[transport.RemoteError](err); answered {
			return reply, err
		}
		if err == nil {
			return reply, json.Unmarshal(text, &reply)
		}
		why = append(why, err.Error())
		r.IfThere = r.IfThere || errors.Is(err, transport.ErrUnanswered)
	}
	return reply, fmt.Errorf("no member of the cluster answers; check that a member's server runs (%s)", strings.Join(why, "; "))
}

// Join asks the member at addr to admit a member that listens at listen. The new member
// replaces the member inPlaceOf, unless that is 0.
func Join(ctx context.Context, addr string, t directory.Token, listen string, inPlaceOf uint64) (j Joined, err error) {
	// #nosec G117 -- only the member that made the token gets its secret
	body, err := json.Marshal(joinRequest{Secret: t.Secret, Listen: listen, InPlaceOf: inPlaceOf})
	if err != nil {
		return j, err
	}
	text, err := transport.Join(ctx, addr, t.Fingerprint, body)
	if err != nil {
		return j, err
	}
	if err := json.Unmarshal(text, &j); err != nil {
		return j, fmt.Errorf("the response from the member at %s: %w", addr, err)
	}
	if j.Cluster != t.Cluster {
		return j, errors.New("the member at the token's address belongs to another cluster; create a new token")
	}
	return j, nil
}
