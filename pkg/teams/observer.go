package teams

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"cadre/internal/observe"
	"cadre/internal/observe/present"
	"cadre/internal/observe/protocol"
	"cadre/internal/observe/source"
	"cadre/internal/observe/store"
	"cadre/internal/replica"
)

// Observer watches a team of Claude Code that another program runs. It reads the streams of its
// agents (--output-format stream-json), their transcripts, and the files of the team. It also reads
// the message objects of the Agent SDK, one JSON object each. It starts no session, answers no
// request and writes no file.
//
// A source is one stream or file. The caller chooses its name, and uses the same name when it reads
// the source again. A message that is shown again counts once. Unreadable lines are counted, and
// reading continues.
//
// Methods may be called from any goroutine.
type Observer struct {
	watch *store.Watch
	log   *slog.Logger

	mu        sync.Mutex
	consumers []*consumer
}

// ObserverOptions configure an [Observer]. All may be zero.
type ObserverOptions struct {
	// Lead is the lead's name until a stream contains another one; "" for team-lead.
	Lead string
	// Team restricts the observer to the team of that name; "" for the team that started last.
	Team string
	// Saved is what [Observer.Save] returned, to continue from there; nil for nothing.
	Saved []byte
	// State is the team from [Observer.State], to continue from if nothing else was saved. Agents
	// are the names that an older consumer kept instead; then the team is named "team" until its
	// name is seen. The observer uses the one with the most information.
	State  *TeamState
	Agents []string
	// Logger gets information that is not an error; nil for none.
	Logger *slog.Logger
}

// NewObserver returns an observer that continues from the saved state. The error has the code
// [ErrNewerVersion] if a newer version saved it. It has the code [ErrInvalid] if the state is not a
// team's, or belongs to another team than Team.
func NewObserver(o ObserverOptions) (*Observer, error) {
	options := observe.Options{Lead: o.Lead, Of: o.Team}
	saved, err := o.saved(options)
	if err != nil {
		return nil, err
	}
	one := &Observer{log: o.Logger}
	one.watch = &store.Watch{Now: replica.Now, Look: one.look, Saved: saved}
	if err := one.watch.Begin(context.Background(), store.Team(options)); err != nil {
		return nil, public(err)
	}
	return one, nil
}

// saved returns the state that the observer continues from.
func (o *ObserverOptions) saved(options observe.Options) ([]byte, error) {
	var one *observe.Observer
	switch {
	case len(o.Saved) > 0:
		return o.Saved, nil
	case o.State != nil:
		state, err := present.ReadTeamState(encoded(o.State))
		if err != nil {
			return nil, refuse(ErrInvalid, err.Error())
		}
		one, _ = observe.FromTeamState(options, state, replica.Now())
	case len(o.Agents) > 0:
		one, _ = observe.FromAgents(options, o.Agents, replica.Now())
	default:
		return nil, nil
	}
	return one.Save()
}

// Observation is what one message reveals about the team. It is zero for nearly all messages.
type Observation struct {
	// TeamToolUse says that the message calls a tool of the team, or has the result of such a call.
	// A program that passes the message on sets this flag in its metadata ([TeamToolUseKey]). Then
	// no reader shows both the message and those that supplement it.
	TeamToolUse bool
	// Messages supplement the message for programs that render team activity instead of tool calls:
	// team_state_change, team_task_update or team_message, as JSON.
	Messages []json.RawMessage
	// Notices are the events as JSON: team:created, team:member:joined, team:task:completed …
	Notices []json.RawMessage
	// Events are the events, as [Observer.Events] yields them.
	Events []Event
}

// Show passes one message, or line, of a source to the observer.
func (o *Observer) Show(source string, message []byte) Observation {
	seen := o.watch.Show(source, message)
	s := Observation{TeamToolUse: seen.TeamToolUse, Events: eventsOf(seen.Records...)}
	for _, m := range seen.Supplements {
		s.Messages = append(s.Messages, encoded(m))
	}
	for _, n := range seen.Notices {
		s.Notices = append(s.Notices, encoded(n))
	}
	return s
}

// TeamToolUseKey is the key of that flag in a message's metadata.
const TeamToolUseKey = present.FlagKey

// Capabilities are the features of one way to reach a session. An [Observer] answers nothing and
// sends nothing.
type Capabilities struct {
	Streaming     bool         `json:"streaming"`     // messages arrive while the model writes them
	Permissions   bool         `json:"permissions"`   // requests for permission can be answered
	SlashCommands bool         `json:"slashCommands"` // slash commands can be sent to the session
	Availability  Availability `json:"availability"`
	Teams         bool         `json:"teams"` // its sessions show what teams do
}

// Adapters returns the ways to observe sessions: stream, transcript, sdk-url, agent-sdk, acp and
// codex. The last two have no teams: the program cadre shows such a session as a single member
// (cadre observe --agent).
func Adapters() map[string]Capabilities {
	all := map[string]Capabilities{}
	for name, c := range present.Adapters {
		all[name] = Capabilities{c.Streaming, c.Permissions, c.SlashCommands, Availability(c.Availability), c.Teams}
	}
	return all
}

func encoded(v any) json.RawMessage {
	out, _ := json.Marshal(v) // of plain values
	return out
}

// Introduce declares that a source is the stream of that teammate, if its lines do not say so.
func (o *Observer) Introduce(source, member string) { o.watch.Introduce(source, "", member) }

// IntroduceEnvironment declares that a source is the stream of a session with this environment, in
// the form of os.Environ. It reports whether the session is a teammate's.
func (o *Observer) IntroduceEnvironment(source string, environ []string) bool {
	ofTeam, member := protocol.TeammateOf(func(name string) string {
		for _, one := range environ {
			if value, ok := strings.CutPrefix(one, name+"="); ok {
				return value
			}
		}
		return ""
	})
	if member != "" {
		o.watch.Introduce(source, ofTeam, member)
	}
	return member != ""
}

// Gap reports that part of a source was lost, for example while a connection was down.
func (o *Observer) Gap(source, reason string) { o.watch.Gap(source, reason) }

// Read passes all lines of the reader to the observer, to its end. If ctx ends first, Read returns
// without waiting for the reader.
func (o *Observer) Read(ctx context.Context, name string, r io.Reader) error {
	return o.bring(ctx, &source.Stream{Source: name, Reader: r})
}

// Follow passes the lines of a file to the observer, and later lines as they are written, until ctx
// ends. The path is the source. The error has the code [ErrInvalid] for a folder.
func (o *Observer) Follow(ctx context.Context, path string) error {
	return public(o.bring(ctx, &source.File{Path: path, Follow: true}))
}

// Transcripts passes all transcripts below Claude Code's folder or a project's to the observer, and
// later lines as they are written, until ctx ends. The error has the code [ErrInvalid] if the path
// is not a folder.
func (o *Observer) Transcripts(ctx context.Context, dir string) error {
	return public(o.bring(ctx, &source.Transcripts{Dir: dir, Follow: true}))
}

// ClaudeTeam passes the files of a team of Claude Code to the observer, and their later changes. It
// returns nil when the team no longer exists, and an error when ctx ends. claude is Claude Code's
// folder, and name a folder in its teams folder. The error has the code [ErrNotFound] if the team
// does not exist.
func (o *Observer) ClaudeTeam(ctx context.Context, claude, name string) error {
	return public(o.bring(ctx, &source.ClaudeTeam{Claude: claude, Name: name, Follow: true}))
}

func (o *Observer) bring(ctx context.Context, f source.Feed) error {
	if err := f.Run(ctx, o.watch); err != nil {
		return err
	}
	return ctx.Err()
}

// TeamName returns the name of the team; "" before there is one, and after it was deleted.
func (o *Observer) TeamName() string {
	if s := o.State(); s != nil {
		return s.Name
	}
	return ""
}

// State returns the present state of the team; nil without a team.
func (o *Observer) State() *TeamState {
	var s *TeamState
	o.watch.View(func(seen store.Observer) { s = teamStateOf(present.StateOf(seen.Team())) })
	return s
}

// Agents returns the names of the teammates. Without a team it returns the names that the session
// listed at its start.
func (o *Observer) Agents() (names []string) {
	o.watch.View(func(seen store.Observer) { names = seen.Agents() })
	return names
}

// Save returns the observer's whole state as JSON, including messages that wait for their other
// half. It may be called between any two messages.
func (o *Observer) Save() (saved []byte, err error) {
	o.watch.View(func(seen store.Observer) { saved, err = seen.Save() })
	return saved, err
}

// Events yields the events after the call, as they happen, until ctx ends. The last pair then has
// the error of ctx. A consumer misses no event and does not delay the observer: the observer keeps
// events until they are taken.
func (o *Observer) Events(ctx context.Context) iter.Seq2[Event, error] {
	c := &consumer{more: make(chan struct{}, 1)}
	o.mu.Lock()
	o.consumers = append(o.consumers, c)
	o.mu.Unlock()
	context.AfterFunc(ctx, func() { o.part(c) })
	return func(yield func(Event, error) bool) {
		defer o.part(c)
		for {
			for _, e := range o.taken(c) {
				if !yield(e, nil) {
					return
				}
			}
			select {
			case <-c.more:
			case <-ctx.Done():
				yield(Event{}, ctx.Err())
				return
			}
		}
	}
}

// consumer is one caller of Events.
type consumer struct {
	waiting []Event
	more    chan struct{} // something waits
}

func (o *Observer) taken(c *consumer) []Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	events := c.waiting
	c.waiting = nil
	return events
}

func (o *Observer) part(c *consumer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.consumers = slices.DeleteFunc(o.consumers, func(one *consumer) bool { return one == c })
}

func (o *Observer) look(_ store.Observer, seen observe.Seen) error {
	if o.log != nil {
		for _, text := range seen.Warnings {
			o.log.Info(text)
		}
	}
	if len(seen.Records) == 0 {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.consumers {
		c.waiting = append(c.waiting, eventsOf(seen.Records...)...) // its own copy: it may change the event
		select {
		case c.more <- struct{}{}:
		default:
		}
	}
	return nil
}

// TeamState is an observed team, in the shape that consumers of an agent's stream use. Its members
// are the teammates.
type TeamState struct {
	Name    string           `json:"name"`
	Role    SessionRole      `json:"role"` // of the session that is observed
	Members []ObservedMember `json:"members"`
	Tasks   []ObservedTask   `json:"tasks"`
}

// ObservedMember is a teammate of an observed team. A teammate that has ended stays in the list.
type ObservedMember struct {
	Name      string         `json:"name"`
	AgentID   string         `json:"agentId"`
	AgentType string         `json:"agentType"`
	Status    ObservedStatus `json:"status"`
	Model     string         `json:"model,omitempty"`
	Color     string         `json:"color,omitempty"`
}

// ObservedTask is a task of an observed team.
type ObservedTask struct {
	ID          string     `json:"id"`
	Subject     string     `json:"subject"`
	Description string     `json:"description,omitempty"`
	Status      TaskStatus `json:"status"` // never deleted
	Owner       string     `json:"owner,omitempty"`
	ActiveForm  string     `json:"activeForm,omitempty"`
	BlockedBy   []string   `json:"blockedBy"`
	Blocks      []string   `json:"blocks"`
}

func teamStateOf(s *present.TeamState) *TeamState {
	if s == nil {
		return nil
	}
	out := &TeamState{Name: s.Name, Role: SessionRole(s.Role), Members: []ObservedMember{}, Tasks: []ObservedTask{}}
	for _, m := range s.Members {
		out.Members = append(out.Members, ObservedMember{m.Name, m.AgentID, m.AgentType,
			ObservedStatus(m.Status), m.Model,
			m.Color})
	}
	for _, t := range s.Tasks {
		out.Tasks = append(out.Tasks, ObservedTask{t.ID, t.Subject, t.Description, TaskStatus(t.Status), t.Owner,
			t.ActiveForm, t.BlockedBy, t.Blocks})
	}
	return out
}
