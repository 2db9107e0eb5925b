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
	"cadre/internal/journal/store"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

const (
	// hostLog is the log file of background hosts in a team's folder.
	hostLog = "host.log"
	// hostTime bounds the wait for a background host to take a member.
	hostTime = 20 * time.Second
	// hostLook is how often that wait checks whether a host runs at all.
	hostLook = 100 * time.Millisecond
)

// HostLog opens the log of background hosts in a team's folder. The caller must close it.
func HostLog(folder string) (*os.File, error) {
	return regularfile.OpenFile(filepath.Join(folder, hostLog), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}

// Launch is a background host that is ready to start: everything that can fail beforehand has been
// done.
type Launch struct {
	team *Team
	log  *os.File
}

// Launch prepares a background host without starting it. The caller must close it.
func (t *Team) Launch() (*Launch, error) {
	if t.engine.HostCommand == nil || !t.OnDisk() {
		return nil, errors.New("no host can run its session: this program starts none in the background")
	}
	if err := os.MkdirAll(t.Hosts(), 0o700); err != nil {
		return nil, fmt.Errorf("no host can run its session: %w", err)
	}
	log, err := HostLog(t.Dir)
	if err != nil {
		return nil, fmt.Errorf("no host can run its session, because its log cannot be written: %w; remove or mend "+
			"that, then try again", err)
	}
	return &Launch{t, log}, nil
}

// Close closes the log.
func (l *Launch) Close() { l.log.Close() }

// EnsureHost makes sure that a running host has the leases of the members. It starts one in the
// background if there is none. Without members it does nothing.
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

// Hosted reports whether a process runs the sessions of the team's members, without those that run
// on machines with labels.
func (t *Team) Hosted(ctx context.Context) bool { return host.HostedHere(ctx, t.Shared()) }

// Ensure does the same as [Team.EnsureHost].
func (l *Launch) Ensure(ctx context.Context, members ...string) error {
	started := false
	for _, member := range members {
		if err := l.await(ctx, member, &started); err != nil {
			return err
		}
	}
	return nil
}

// start starts the host. It runs as the user, even if a session of ours asked for it. A nested team
// has its host where its parent has one.
func (l *Launch) start(ctx context.Context) error {
	e := l.team.engine
	if err := l.team.nestedIn(ctx, "run", team.ActResume); err != nil {
		return err
	}
	env := e.Home.ForOurs(access.Unnamed(os.Environ()))
	err := proc.DetachTrusted(e.Home.Running(), e.HostCommand(l.team.ref()), env, l.log)
	if err == nil && e.Kept != nil {
		e.Kept(l.team.Team().ID)
	}
	return err
}

// await waits until a running host has the member's lease, or the member has ended. If no host runs
// it starts one, unless one was started. It keeps looking, because a host that is about to end
// takes no member any more.
func (l *Launch) await(ctx context.Context, member string, started *bool) error {
	t := l.team
	return t.awaitHost(ctx, fmt.Errorf("no host took %s within %s; its log is %s", member, team.Span(hostTime),
		filepath.Join(t.Dir, hostLog)), func() (bool, error) {
		m, _ := t.member(member)
		switch {
		case !m.Status.Running() || t.leased(ctx, m):
			return true, nil
		case !*started && !t.Hosted(ctx):
			*started = true
			return false, l.start(ctx)
		}
		return false, nil
	})
}

// awaitHost calls done at each change of the team, and at least each [hostLook], until it returns
// true or an error, or for [hostTime]. Then it returns late.
func (t *Team) awaitHost(ctx context.Context, late error, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, hostTime, late)
	defer cancel()
	for {
		var seq int64
		t.View(func(s *team.State) { seq = s.Seq() })
		if is, err := done(); is || err != nil {
			return err
		}
		look, stop := context.WithTimeout(ctx, hostLook)
		err := t.Wait(look, seq)
		again := look.Err() != nil
		stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil && !again {
			return err
		}
	}
}

// Served reports whether a running host has the member's lease.
func (t *Team) Served(ctx context.Context, member string) bool {
	m, _ := t.member(member)
	return t.leased(ctx, m)
}

func (t *Team) leased(ctx context.Context, m team.Member) bool {
	return m.Host != "" && t.Shared().Held(ctx, store.Host(m.Host))
}

// member returns the member and the seq of the record that the answer is based on.
func (t *Team) member(name string) (m team.Member, seq int64) {
	t.View(func(s *team.State) { m, _ = s.Member(name); seq = s.Seq() })
	return m, seq
}
