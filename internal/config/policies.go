package config

import (
	"maps"

	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/policy"
)

// A policyTable is a [[policy]] table: patterns of tubes and settings of
// [policy.Settings].
type policyTable map[string]any

const (
	policyName = "policy" // name of the table
	tubesOf    = "tubes"  // setting with the patterns
)

// TubePolicies returns the policies of tubes.
func (opt *Options) TubePolicies() (*policy.Set, error) {
	var configs []policy.Config
	for i, t := range opt.Tables.Policies {
		c := policy.Config{Settings: maps.Clone(t)}
		delete(c.Settings, tubesOf)
		list, ok := t[tubesOf].([]any)
		for _, glob := range list {
			text, is := glob.(string)
			c.Tubes, ok = append(c.Tubes, text), ok && is
		}
		if !ok && t[tubesOf] != nil {
			return nil, exit.UsageError("%s: policy %d: tubes: want a list of patterns", opt.File, i+1)
		}
		configs = append(configs, c)
	}
	set, err := policy.New(configs)
	if err != nil {
		return nil, exit.UsageError("%s: %w", opt.File, err)
	}
	return set, nil
}
