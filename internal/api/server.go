package api

import (
	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// getServer describes the server.
func (r *request) getServer(*admin.None) (admin.Server, error) {
	facts := admin.Server{Version: r.api.opt.Version}
	if r.api.opt.Facts != nil {
		facts = r.api.opt.Facts()
	}
	err := r.turn(func(e *engine.Engine, _ int64) error {
		facts.Memory.Jobs, facts.Memory.Limit = e.LimitedMemory()
		if j := r.api.journal(); j != nil && facts.Journal != nil {
			facts.Journal.Journal = *j
		}
		return nil
	})
	facts.Settings = append([]admin.Setting{}, facts.Settings...)
	facts.Listeners = append([]admin.Listener{}, facts.Listeners...)
	facts.Certificates = append([]admin.Certificate{}, facts.Certificates...)
	return facts, err
}
