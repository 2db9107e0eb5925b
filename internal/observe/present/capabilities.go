package present

// Capabilities describe what an adapter offers to users of its sessions. An adapter that only
// observes cannot answer requests or send commands.
type Capabilities struct {
	Streaming     bool   `json:"streaming"`     // messages arrive while the model writes them
	Permissions   bool   `json:"permissions"`   // permission requests can be answered
	SlashCommands bool   `json:"slashCommands"` // slash commands can be sent to the session
	Availability  string `json:"availability"`  // of its sessions: local, remote or both
	Teams         bool   `json:"teams"`         // its sessions show what teams do
}

// Adapters are the ways to observe sessions. A session of an adapter without teams is shown as a
// single member, with its activity, tools and usage.
var Adapters = map[string]Capabilities{
	"stream":     {Streaming: true, Availability: "both", Teams: true},
	"transcript": {Availability: "local", Teams: true},
	"sdk-url":    {Streaming: true, Permissions: true, SlashCommands: true, Availability: "both", Teams: true},
	"agent-sdk":  {Streaming: true, Permissions: true, SlashCommands: true, Availability: "local", Teams: true},
	"acp":        {Streaming: true, Permissions: true, SlashCommands: true, Availability: "local"},
	"codex":      {Streaming: true, Permissions: true, Availability: "local"},
}
