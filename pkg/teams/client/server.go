package client

import (
	"context"
	"encoding/json"
	"time"

	"cadre/internal/inspect/attention"
	"cadre/internal/inspect/catalog"
	core "cadre/internal/team"
	"cadre/pkg/teams"
	"cadre/pkg/teams/internal/wire"
)

// Health says that the server answers.
type Health struct {
	Healthy bool   `json:"healthy"`
	Version string `json:"version"` // of the program
}

// Health asks the server whether it answers.
func (c *Client) Health(ctx context.Context) (Health, error) {
	return ask[Health](ctx, c, get("health"))
}

// Description returns the description of the API, in the form of OpenAPI 3.1.
func (c *Client) Description(ctx context.Context) (json.RawMessage, error) {
	return ask[json.RawMessage](ctx, c, get("openapi.json"))
}

// Role is what a token allows. Each role includes the ones before it.
type Role string

// The roles.
const (
	RoleObserve Role = "observe" // read everything
	RoleAnswer  Role = "answer"  // answer requests for permission and plans, and send messages
	RoleSteer   Role = "steer"   // add and change tasks and members
	RoleAdmin   Role = "admin"   // what runs commands on the machine, ends teams or changes git
)

// Caller is who this program is for the server.
type Caller struct {
	User   bool   `json:"user"`   // the person who owns the home
	Team   string `json:"team"`   // of a member, in whose session the program runs
	Member string `json:"member"` // its name
	Role   Role   `json:"role"`   // of the user
	Token  string `json:"token"`  // its name; "" on the unix socket
}

// Caller asks the server who this program is.
func (c *Client) Caller(ctx context.Context) (Caller, error) {
	return ask[Caller](ctx, c, get("caller"))
}

// KeptTeam is a team that the server keeps running.
type KeptTeam struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Start   bool   `json:"start"`   // the server resumes it even if it is paused
	Running bool   `json:"running"` // a process runs it
	Why     string `json:"why"`     // why none does
	Tries   int    `json:"tries"`   // how often in a row it could not be resumed
}

// KeptTeams lists the teams that the server keeps running.
func (c *Client) KeptTeams(ctx context.Context) ([]KeptTeam, error) {
	return ask[[]KeptTeam](ctx, c, get("server", "teams"))
}

// KeepTeam lets the server keep a team running that another process has just started.
func (c *Client) KeepTeam(ctx context.Context, name string) error {
	return c.do(ctx, to("PUT", "server", "teams", name), nil)
}

// DropTeam lets the server keep a team running no longer. The team is not stopped.
func (c *Client) DropTeam(ctx context.Context, name string) error {
	return c.do(ctx, to("DELETE", "server", "teams", name), nil)
}

// ReserveRoom reserves room for a teammate that this program is about to add by itself, until the
// teammate has joined, for at most 45 seconds. The server refuses it if it runs as many teammates
// as it may.
func (c *Client) ReserveRoom(ctx context.Context, name, member string) error {
	return c.do(ctx, to("PUT", "teams", name, "rooms", member), nil)
}

// GiveBackRoom gives back the room of a teammate that does not join.
func (c *Client) GiveBackRoom(ctx context.Context, name, member string) error {
	return c.do(ctx, to("DELETE", "teams", name, "rooms", member), nil)
}

// LoginCode is a one-time code with which a browser logs in, at /login?code=CODE.
type LoginCode struct {
	Code    string
	Expires time.Time
}

// CreateLoginCode makes a one-time code. The browser gets the role of the token with that name; of
// the client's own token for "".
func (c *Client) CreateLoginCode(ctx context.Context, token string) (LoginCode, error) {
	is, err := ask[struct {
		Code    string    `json:"code"`
		Expires core.Time `json:"expires"`
	}](ctx, c, post("login-codes").with(map[string]string{"token": token}))
	return LoginCode{is.Code, clock(is.Expires)}, err
}

func clock(t core.Time) time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(t)).UTC()
}

// Teams are all teams at some moment.
type Teams struct {
	Teams     []teams.Overview // sorted by name
	Attention []teams.Attention
}

// allTeams are the Teams as the server sends them.
type allTeams struct {
	Teams     []catalog.Overview `json:"teams"`
	Attention []attention.Item   `json:"attention"`
}

func (a allTeams) public() Teams { return Teams{overviewsOf(a.Teams), itemsOf(a.Attention)} }

// overviewsOf returns the teams of a list. A team that cannot be read has a name and what is wrong.
func overviewsOf(all []catalog.Overview) (found []teams.Overview) {
	for _, one := range all {
		o := of[teams.Overview](one)
		if one.ID == "" {
			damaged := &teams.Error{Code: teams.ErrDamaged, Text: "team " + one.Name + " cannot be read"}
			for _, item := range one.Attention {
				damaged.Text = item.Text
			}
			o.Err = damaged
		}
		found = append(found, o)
	}
	return found
}

func itemsOf(all []attention.Item) (found []teams.Attention) {
	for _, one := range all {
		found = append(found, attentionOf(one.Team, []core.Item{one.Item})...)
	}
	return found
}

func attentionOf(name string, items []core.Item) []teams.Attention {
	return of[[]teams.Attention](wire.Items{Team: name, Items: items})
}

// longest is how long a request waits, in seconds; then the client asks again.
const longest = 60

// Attention returns the items that wait for a person in all teams: first the teams with a deadline,
// then the others by name.
func (c *Client) Attention(ctx context.Context) ([]teams.Attention, error) {
	return c.items(ctx, get("attention"))
}

// AwaitAttention waits until an item waits for the user in any team, and returns the list at that
// time.
func (c *Client) AwaitAttention(ctx context.Context) ([]teams.Attention, error) {
	return awaited(ctx, func(ctx context.Context) ([]teams.Attention, error) {
		return c.items(ctx, get("attention").number("wait", longest))
	})
}

// TeamAttention returns the items that wait for a person in a team.
func (c *Client) TeamAttention(ctx context.Context, name string) ([]teams.Attention, error) {
	return c.items(ctx, team("GET", name, "attention"))
}

// AwaitTeamAttention is AwaitAttention for one team.
func (c *Client) AwaitTeamAttention(ctx context.Context, name string) ([]teams.Attention, error) {
	return awaited(ctx, func(ctx context.Context) ([]teams.Attention, error) {
		return c.items(ctx, team("GET", name, "attention").number("wait", longest))
	})
}

func (c *Client) items(ctx context.Context, r request) ([]teams.Attention, error) {
	all, err := ask[[]attention.Item](ctx, c, r)
	return itemsOf(all), err
}
