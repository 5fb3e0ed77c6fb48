package api

import (
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// ServerFacts are what a server is, and how it was started. No secret is among them.
type ServerFacts struct {
	Version      string        `json:"version"`
	Go           string        `json:"go"`
	Host         string        `json:"host"`
	PID          int           `json:"pid"`
	Started      string        `json:"started"`
	Settings     []Setting     `json:"settings"`
	Tables       string        `json:"tables"` // of the configuration file, as TOML
	Listeners    []Listener    `json:"listeners"`
	Certificates []Certificate `json:"certificates"`
	Journal      *JournalFacts `json:"journal,omitempty"`
	Memory       MemoryFacts   `json:"memory"`
}

// A Setting is one of the configuration that is in force.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"` // as TOML has it
	From  string `json:"from"`  // what has set it
}

// A Listener is where clients come in.
type Listener struct {
	Address     string   `json:"address"`
	Serves      string   `json:"serves"` // clients, or the admin pages
	TLS         bool     `json:"tls"`
	ClientCerts bool     `json:"client_certificates"` // are asked for
	RequireAuth bool     `json:"require_auth"`
	Networks    []string `json:"networks"` // none: any
}

// A Certificate is one that a listener shows.
type Certificate struct {
	File   string `json:"file"`
	Begins string `json:"begins"`
	Ends   string `json:"ends"`
	Soon   bool   `json:"soon"` // or it has ended
}

// JournalFacts are how the journal is, and where.
type JournalFacts struct {
	Directory string `json:"directory"`
	Journal
}

// MemoryFacts are how much of their limit the jobs take, in bytes.
type MemoryFacts struct {
	Jobs  int64 `json:"jobs"`
	Limit int64 `json:"limit"` // 0: there is none
}

// getServer tells what the server is.
func getServer(r *request) (reply, error) {
	facts := ServerFacts{Version: r.api.opt.Version}
	if r.api.opt.Facts != nil {
		facts = r.api.opt.Facts()
	}
	err := r.turn(func(e *engine.Engine, _ int64) error {
		facts.Memory.Jobs, facts.Memory.Limit = e.LimitedMemory()
		if facts.Journal != nil && r.api.opt.Journal != nil {
			facts.Journal.Journal = r.api.opt.Journal()
		}
		return nil
	})
	facts.Settings = append([]Setting{}, facts.Settings...)
	facts.Listeners = append([]Listener{}, facts.Listeners...)
	facts.Certificates = append([]Certificate{}, facts.Certificates...)
	return reply{body: facts}, err
}
