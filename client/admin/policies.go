package admin

// OfPolicy identifies the run-time settings of a pattern.
type OfPolicy struct {
	// Tube name or pattern: `*` matches any characters, `?` (written %3F) one.
	Pattern string `path:"pattern"`
}

// SetPolicy is the input of Client.SetPolicy. Settings that it does not contain are not
// changed. ExplainPolicy returns all settings and their values.
type SetPolicy struct {
	OfPolicy
	_     struct{}          `body:"required" minmembers:"1"`
	Set   map[string]string `json:"set" as:"PolicySettings"`
	Unset []string          `json:"unset" as:"PolicySetting"`
}

// Policies are the policies that the client can see.
type Policies struct {
	Policies []Policy `json:"policies"`
}

// A Policy contains the settings of a pattern from one source.
type Policy struct {
	Pattern string `json:"pattern" minlen:"1"`
	Source  string `json:"source" enum:"file,runtime"` // `file` is the configuration file, `runtime` the API or a command.
	Number  int64  `json:"number,omitempty"`           // Position in the file, from 1.
	// Values as text. A dead tube on which the client has no right is left out.
	Settings map[string]string `json:"settings" as:"PolicySettings"`
	Warnings []string          `json:"warnings,omitempty" maxitems:"99"` // Settings that are allowed but probably unintended.
}

// TubePolicy contains the effective settings of a tube. The tube need not exist.
type TubePolicy struct {
	Tube     string           `json:"tube" as:"TubeName"`
	Settings []SettingInForce `json:"settings"`
}

// A SettingInForce is the effective value of a setting, with its source.
type SettingInForce struct {
	Name    string   `json:"name" as:"PolicySetting"`
	Value   string   `json:"value"`
	Hidden  bool     `json:"hidden,omitempty"` // The value names a tube on which the client has no right.
	Source  string   `json:"source" enum:"default,file,runtime"`
	Pattern string   `json:"pattern,omitempty"` // Pattern of the policy that sets the value; absent for a default.
	Number  int64    `json:"number,omitempty"`  // Position of that policy in the file.
	Default string   `json:"default"`
	Takes   string   `json:"takes"`           // Description of the accepted values.
	Words   []string `json:"words,omitempty"` // All accepted values, if there are few.
	About   string   `json:"about"`           // Effect of the setting.
}
