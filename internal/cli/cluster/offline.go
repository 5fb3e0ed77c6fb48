package cluster

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/beanpole-mq/beanpole/internal/advice"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/cluster"
	"github.com/beanpole-mq/beanpole/internal/exit"
)

// An offline is the output of "status --offline".
type offline struct {
	Member  uint64 `json:"member"`
	Cluster string `json:"cluster"`
	Address string `json:"address"`
	UsedBy  string `json:"used_by,omitempty"` // process that uses the directory; empty if there is none
	cluster.Inspection
	Problem string `json:"problem,omitempty"` // empty if a server can start on the directory

	err error // error whose text is Problem, or nil
}

// inspect reads the directory of a member.
func inspect(dir string) (*offline, error) {
	d, err := open(dir)
	if err != nil {
		return nil, err
	}
	holder, err := advice.LockOwner(dir)
	if err != nil {
		return nil, err
	}
	found, err := cluster.Inspect(fsys, dir)
	o := &offline{Member: d.ID, Cluster: d.Cluster, Address: d.Listen, UsedBy: holder, Inspection: found, err: err}
	if err != nil {
		o.Problem = advice.Plain(err)
	}
	return o, nil
}

func (o *offline) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(o)
	}
	line := func(what, format string, args ...any) {
		fmt.Fprintf(w, "%-9s %s\n", what, fmt.Sprintf(format, args...))
	}
	line("member", "%d, at %s, of cluster %s", o.Member, o.Address, o.Cluster)
	if o.UsedBy != "" {
		line("used by", "%s, which might be writing; the newest entries might be missing here", o.UsedBy)
	}
	switch {
	case len(o.Members) == 0:
		line("log", "cannot be read")
	case o.Last == o.Cut:
		line("term", "%d", o.Term)
		line("log", "empty; it starts after entry %d of term %d", o.Last.Index, o.Last.Term)
	default:
		line("term", "%d", o.Term)
		line("log", "entries %d to %d, the last of term %d; committed at least up to %d", o.Cut.Index+1, o.Last.Index, o.Last.Term, o.Commit)
	}
	line("journal", "contains the entries up to entry %d of term %d", o.Applied.Index, o.Applied.Term)
	if o.Problem != "" {
		line("problem", "%s", o.Problem)
	}
	if len(o.Members) == 0 {
		return nil
	}
	return cliutil.PrintRows(w, "ID ADDRESS ROLE", o.Members, func(m *cluster.InspectedMember) []any {
		return []any{fmt.Sprint(m.ID), m.Address, string(m.Role)}
	})
}

// verdict returns the error of the command.
func (o *offline) verdict(dir string) error {
	if o.Problem == "" {
		return nil
	}
	return exit.WithCode(exit.Journal, fmt.Errorf("the member cannot use this directory: %s", advice.Member(dir, o.err)))
}
