package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"

	"cadre/internal/access"
	"cadre/internal/journal/relay"
	"cadre/internal/journal/store"
	"cadre/internal/layout"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/unixsocket"
	"cadre/internal/team"
)

// serve gives the team to processes of this machine that do not know its place, such as sessions of
// agents, until ctx ends. They act as the members whose sessions they are. For a team on files it
// does nothing. stop waits until no call is left.
func (t *Team) serve(ctx context.Context, host string) (stop func(), err error) {
	if t.engine.Home.Place == nil {
		return func() {}, nil
	}
	j, err := t.engine.Home.OpenFolder(t.Dir, t.engine.Note)
	if err != nil {
		return nil, err
	}
	l, err := unixsocket.Listen(filepath.Join(t.Hosts(), host, layout.TeamSocket))
	if err != nil {
		j.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		relay.Serve(ctx, l, relay.Served{ID: j.ID(), Journal: j, Team: t.Shared(), Rights: t.rightsOf})
		j.Close()
	}()
	return func() { cancel(); <-ended }, nil
}

// rightsOf returns the rights of the process at the other end of a connection.
func (t *Team) rightsOf(conn syscall.Conn) (relay.Rights, error) {
	peer, err := proc.PeerOf(conn)
	if err != nil {
		return nil, err
	}
	caller, err := access.Peer(t.engine.Home, peer.Pid)
	if err != nil {
		return nil, err
	}
	if now, err := proc.StartTime(peer.Pid); err != nil || now != peer.Start {
		return nil, fmt.Errorf("process %d has ended", peer.Pid)
	}
	if err := caller.Reach(filepath.Base(t.Dir)); err != nil {
		return nil, refused(err)
	}
	return rights{caller}, nil
}

// rights are those of a caller who does not know the place. The user's own programs, such as hooks,
// may do everything.
type rights struct{ caller access.Caller }

// Append implements [relay.Rights]: a member acts as itself.
func (r rights) Append(data []byte) error {
	if r.caller.IsUser() {
		return nil
	}
	record, err := team.DecodeRecord(0, string(data))
	if err != nil {
		return err
	}
	if member := r.caller.Member(); member == "" || record.Actor != member {
		return r.deny("cannot act as %s", record.Actor)
	}
	return nil
}

// Save implements [relay.Rights]. Every process starts from a snapshot, so a member saves none.
func (r rights) Save() error {
	if r.caller.IsUser() {
		return nil
	}
	return r.deny("saves no snapshot")
}

// Acquire implements [relay.Rights].
func (r rights) Acquire(lease string) error {
	if r.caller.IsUser() || r.caller.Member() != "" && lease == store.Presence(r.caller.Member()) {
		return nil
	}
	return r.deny("cannot take the lease %s", lease)
}

// Change implements [relay.Rights].
func (r rights) Change(key string) error {
	if r.caller.IsUser() {
		return nil
	}
	return r.deny("cannot change %s", key)
}

func (r rights) deny(format string, args ...any) error {
	return &relay.RefusedError{Code: string(team.Denied),
		Text: fmt.Sprintf("This is %s, and "+format+".", append([]any{r.caller}, args...)...)}
}

// refused returns the refusal for a caller at the other end of a connection.
func refused(err error) error {
	return &relay.RefusedError{Code: string(team.CodeOf(err)), Text: err.Error()}
}
