package admin

// OfPolicy is about what was set for a pattern of tubes while the server ran.
type OfPolicy struct {
	Pattern string `path:"pattern"` // The name of a tube, or a pattern: `*` is any characters, `?` (written %3F) is one.
}

// SetPolicy sets settings for a pattern of tubes, and unsets others. Those that are not named stay as they are. ExplainPolicy
// has all settings, and what each takes.
type SetPolicy struct {
	OfPolicy
	_     struct{}          `body:"required" minmembers:"1"`
	Set   map[string]string `json:"set" as:"PolicySettings"`
	Unset []string          `json:"unset" as:"PolicySetting"`
}

// Policies are all of a server that the client may see.
type Policies struct {
	Policies []Policy `json:"policies"`
}

// A Policy is what is said of the tubes of a pattern in one place.
type Policy struct {
	Pattern  string            `json:"pattern" minlen:"1"`
	Source   string            `json:"source" enum:"file,runtime"`       // The configuration file, or it was set while the server ran.
	Number   int64             `json:"number,omitempty"`                 // Of the policy in the file, from 1.
	Settings map[string]string `json:"settings" as:"PolicySettings"`     // Values as text. A dead tube on which the client has no right is left out.
	Warnings []string          `json:"warnings,omitempty" maxitems:"99"` // What is allowed, and probably not meant.
}

// TubePolicy is what each setting is for a tube, which need not exist.
type TubePolicy struct {
	Tube     string           `json:"tube" as:"TubeName"`
	Settings []SettingInForce `json:"settings"`
}

// A SettingInForce is a setting of the policy of a tube, and where its value comes from.
type SettingInForce struct {
	Name    string   `json:"name" as:"PolicySetting"`
	Value   string   `json:"value"`
	Hidden  bool     `json:"hidden,omitempty"` // The value names a tube on which the client has no right.
	Source  string   `json:"source" enum:"default,file,runtime"`
	Pattern string   `json:"pattern,omitempty"` // Of the policy that sets it; not there with the default.
	Number  int64    `json:"number,omitempty"`  // Of that policy in the file.
	Default string   `json:"default"`
	Takes   string   `json:"takes"`           // Which values it takes, in words.
	Words   []string `json:"words,omitempty"` // All values that it takes, if they are few.
	About   string   `json:"about"`           // What it does.
}
