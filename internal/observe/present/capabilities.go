package present

// Capabilities say what a way to a session has for whoever uses that session by it. Whoever
// observes alone answers nothing and gives nothing.
type Capabilities struct {
	Streaming     bool   `json:"streaming"`     // messages come while the model writes them
	Permissions   bool   `json:"permissions"`   // requests for permission can be answered
	SlashCommands bool   `json:"slashCommands"` // slash commands can be given to the session
	Availability  string `json:"availability"`  // of its sessions: local, remote or both
	Teams         bool   `json:"teams"`         // its sessions show what teams do
}

// Adapters are the ways by which sessions are observed. A session of one without teams is a single
// member, with its activity, tools and usage.
var Adapters = map[string]Capabilities{
	"stream":     {Streaming: true, Availability: "both", Teams: true},
	"transcript": {Availability: "local", Teams: true},
	"sdk-url":    {Streaming: true, Permissions: true, SlashCommands: true, Availability: "both", Teams: true},
	"agent-sdk":  {Streaming: true, Permissions: true, SlashCommands: true, Availability: "local", Teams: true},
	"acp":        {Streaming: true, Permissions: true, SlashCommands: true, Availability: "local"},
	"codex":      {Streaming: true, Permissions: true, Availability: "local"},
}
