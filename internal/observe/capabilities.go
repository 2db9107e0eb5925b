package observe

// Capabilities say what an adapter, by which a session is observed, can do.
type Capabilities struct {
	Streaming     bool   `json:"streaming"`     // messages come while the model writes them
	Permissions   bool   `json:"permissions"`   // it can answer permission requests
	SlashCommands bool   `json:"slashCommands"` // it can give the session a slash command
	Availability  string `json:"availability"`  // of its sessions: local, remote or both
	Teams         bool   `json:"teams"`         // its sessions show what teams do
}

// Adapters are the ways by which sessions are observed. A session of one without teams is a single member, with its activity, tools and usage.
var Adapters = map[string]Capabilities{
	"stream":     {Streaming: true, Availability: "both", Teams: true},
	"transcript": {Availability: "local", Teams: true},
	"sdk-url":    {Streaming: true, Permissions: true, SlashCommands: true, Availability: "both", Teams: true},
	"agent-sdk":  {Streaming: true, Permissions: true, SlashCommands: true, Availability: "local", Teams: true},
	"acp":        {Streaming: true, Permissions: true, SlashCommands: true, Availability: "local"},
	"codex":      {Streaming: true, Permissions: true, Availability: "local"},
}
