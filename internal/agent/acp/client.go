package acp

import (
	"context"
	"fmt"
	"os"
	"slices"

	sdk "github.com/coder/acp-go-sdk"

	"cadre/internal/agent"
	"cadre/internal/team"
)

// client handles the agent's own requests and notifications.
type client struct{ *session }

// SessionUpdate handles one update.
func (c client) SessionUpdate(_ context.Context, n sdk.SessionNotification) error {
	c.mu.Lock()
	if c.loading {
		c.replayed = append(c.replayed, replayed(n.Update))
		c.mu.Unlock()
		return nil
	}
	said, shows := c.decoder.decode(n.Update)
	said = append(c.sees(shows), said...)
	c.mu.Unlock()
	c.sayAll(said)
	return nil
}

// RequestPermission answers a request of the agent. The team's own tools are allowed, what the gate
// forbids is denied, and the rest is asked.
func (c client) RequestPermission(ctx context.Context,
	r sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
	c.mu.Lock()
	name, input, aside := c.decoder.permission(r)
	said := append(c.sees(acted), c.decoder.flush()...)
	access, cancelled := c.access, c.cancelled
	c.mu.Unlock()
	c.sayAll(said)

	allow := func() (sdk.RequestPermissionResponse, error) {
		return choose(r.Options, sdk.PermissionOptionKindAllowOnce, sdk.PermissionOptionKindAllowAlways)
	}
	deny := func() (sdk.RequestPermissionResponse, error) {
		return choose(r.Options, sdk.PermissionOptionKindRejectOnce, sdk.PermissionOptionKindRejectAlways)
	}
	if slices.Contains(team.TeamTools, name) {
		return allow()
	}
	if c.spec.Gate != nil {
		if err := c.spec.Gate(name, input); err != nil {
			c.note(fmt.Sprintf("%s was denied: %s", name, err))
			return deny()
		}
	}
	// While the gate applies, the agent asks about everything, even what no mode asks about.
	gated := access.Gated || !access.Writes
	if access.Mode == "bypassPermissions" && access.Writes || gated && !aside && slices.Contains(looks, name) {
		return allow()
	}
	select {
	case <-cancelled:
		return withdrawn, nil
	default:
	}
	answer := make(chan bool, 1)
	ruled := aside || c.agent.facts.ruled != nil && c.agent.facts.ruled(append(os.Environ(), c.spec.Env...), c.spec.Dir)
	c.say(agent.PermissionAsked{Tool: name, Input: input, Ruled: ruled, Answer: func(allowed bool, reason string) {
		if !allowed && reason != "" {
			c.note(fmt.Sprintf("%s was denied: %s", name, reason))
		}
		answer <- allowed
	}})
	select {
	case allowed := <-answer:
		if allowed {
			return allow()
		}
		return deny()
	case <-cancelled:
	case <-ctx.Done():
	case <-c.ctx.Done():
	}
	return withdrawn, nil
}

// choose answers with the first of the kinds that the agent offers.
func choose(offered []sdk.PermissionOption, kinds ...sdk.PermissionOptionKind) (sdk.RequestPermissionResponse, error) {
	for _, k := range kinds {
		for _, o := range offered {
			if o.Kind == k {
				return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeSelected(o.OptionId)}, nil
			}
		}
	}
	return withdrawn, nil
}

// withdrawn is the answer to a request of a cancelled turn, or to one without a suitable option.
var withdrawn = sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeCancelled()}

// The client offers the agent no files and no terminals: it has its own.

func (client) ReadTextFile(context.Context, sdk.ReadTextFileRequest) (r sdk.ReadTextFileResponse, err error) {
	return r, sdk.NewMethodNotFound("fs/read_text_file")
}

func (client) WriteTextFile(context.Context, sdk.WriteTextFileRequest) (r sdk.WriteTextFileResponse, err error) {
	return r, sdk.NewMethodNotFound("fs/write_text_file")
}

func (client) CreateTerminal(context.Context, sdk.CreateTerminalRequest) (r sdk.CreateTerminalResponse, err error) {
	return r, sdk.NewMethodNotFound("terminal/create")
}

func (client) KillTerminal(context.Context, sdk.KillTerminalRequest) (r sdk.KillTerminalResponse, err error) {
	return r, sdk.NewMethodNotFound("terminal/kill")
}

func (client) TerminalOutput(context.Context, sdk.TerminalOutputRequest) (r sdk.TerminalOutputResponse, err error) {
	return r, sdk.NewMethodNotFound("terminal/output")
}

func (client) ReleaseTerminal(context.Context, sdk.ReleaseTerminalRequest) (r sdk.ReleaseTerminalResponse, err error) {
	return r, sdk.NewMethodNotFound("terminal/release")
}

func (client) WaitForTerminalExit(context.Context,
	sdk.WaitForTerminalExitRequest) (r sdk.WaitForTerminalExitResponse, err error) {
	return r, sdk.NewMethodNotFound("terminal/wait_for_exit")
}
