package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cadre/internal/access"
	"cadre/internal/host"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

const (
	// hostLog is the file in a team's folder that hosts in the background write to.
	hostLog = "host.log"
	// hostTime bounds the wait for a host in the background to take a member.
	hostTime = 10 * time.Second
)

// Launch is a host in the background that can be started: what can fail before that was done.
type Launch struct {
	team *Team
	log  *os.File
}

// Launch prepares a host in the background, without starting it. It is to be closed.
func (t *Team) Launch() (*Launch, error) {
	if t.engine.HostCommand == nil || !t.OnDisk() {
		return nil, errors.New("no host can run its session: this program starts none in the background")
	}
	if err := os.MkdirAll(t.Hosts(), 0o700); err != nil {
		return nil, fmt.Errorf("no host can run its session: %w", err)
	}
	log, err := regularfile.OpenFile(filepath.Join(t.Dir, hostLog), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("no host can run its session, because its log cannot be written: %w; remove or mend "+
			"that, then try again", err)
	}
	return &Launch{t, log}, nil
}

// Close lets go of the log.
func (l *Launch) Close() { l.log.Close() }

// EnsureHost sees to it that a living host has the leases of the members, and starts one in the
// background where none lives. Without members it does nothing.
func (t *Team) EnsureHost(ctx context.Context, members ...string) error {
	if len(members) == 0 {
		return nil
	}
	l, err := t.Launch()
	if err != nil {
		return err
	}
	defer l.Close()
	return l.Ensure(ctx, members...)
}

// Ensure is [Team.EnsureHost].
func (l *Launch) Ensure(ctx context.Context, members ...string) error {
	if !host.Hosted(l.team.Hosts()) {
		// As the user's, also when a session of ours asked for it.
		args := l.team.engine.HostCommand(l.team.Team().Name)
		if err := proc.Detach(args, access.Unnamed(os.Environ()), l.log); err != nil {
			return err
		}
	}
	for _, member := range members {
		if err := l.team.awaitHost(ctx, member); err != nil {
			return err
		}
	}
	return nil
}

// awaitHost waits until a living host has the lease of the member, or the member runs no more.
func (t *Team) awaitHost(ctx context.Context, member string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, hostTime, fmt.Errorf("no host took %s within %s; what it said is in %s",
		member, hostTime, filepath.Join(t.Dir, hostLog)))
	defer cancel()
	for {
		m, seq := t.member(member)
		if !m.Status.Running() || m.Host != "" && proc.Lives(filepath.Join(t.Hosts(), m.Host)) {
			return nil
		}
		if err := t.Wait(ctx, seq); err != nil {
			return context.Cause(ctx)
		}
	}
}

// member is the member as it is after the record seq.
func (t *Team) member(name string) (m team.Member, seq int64) {
	t.View(func(s *team.State) { m, _ = s.Member(name); seq = s.Seq() })
	return m, seq
}
