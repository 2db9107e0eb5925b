package host

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"cadre/internal/git/checkpoint"
	"cadre/internal/journal/store"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/replica"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

const (
	// completionDelay lets messages and claims that follow the end of a task into the same
	// checkpoint.
	completionDelay = time.Second
	// manyMessages is how many messages make a checkpoint due early.
	manyMessages = 10
	// lastCheckpoint bounds the time of the last checkpoint, when the host ends.
	lastCheckpoint = 10 * time.Second
	// mostRecord bounds the file COMPLETED, in bytes.
	mostRecord = 16 << 20
)

// checkpoints returns the time between two checkpoints of a team that changes.
func checkpoints(t team.Team) time.Duration {
	return t.Timing.OrDefaults().Checkpoint
}

// keeper makes the checkpoints of a host's team: soon after a task is completed, after ten
// messages, and after each period, half a minute, with any change.
type keeper struct {
	host  *Host
	store *checkpoint.Store
	seen  int64 // seq of the last record that was looked at
	due   time.Time
	mail  int
	told  string // the last error, which is logged once
	quiet bool   // nothing happened since the last checkpoint, except perhaps in the teams in the team
	tree  tree
}

// startKeeping starts making checkpoints, until kept is called.
func (h *Host) startKeeping(ctx context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.keepCheckpoints(ctx)
	}()
	h.kept = func() {
		cancel()
		<-done
	}
}

// keepCheckpoints makes checkpoints until ctx ends, and then a last one.
func (h *Host) keepCheckpoints(ctx context.Context) {
	t := h.Replica.Team()
	store, err := openStore(ctx, h.Procs, t, h.teamDir())
	if err != nil {
		h.Log("no checkpoints are made: " + err.Error())
		return
	}
	if notice := store.Notice(); notice != "" {
		h.Log(notice)
	}
	k := &keeper{host: h, store: store, seen: h.Replica.Seq(), due: time.Now().Add(completionDelay),
		tree: tree{replica: h.Replica, folder: h.teamDir()}}
	for ctx.Err() == nil {
		k.wait(ctx)
		k.look(ctx)
		if k.due.IsZero() || time.Now().Before(k.due) || ctx.Err() != nil {
			continue
		}
		if k.quiet && !k.tree.changed(ctx) {
			k.due = time.Now().Add(checkpoints(h.Replica.Team()))
			continue
		}
		k.write(ctx)
	}
	select {
	case <-h.fence.killed: // another host may write them by now
		return
	default:
	}
	out, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCheckpoint)
	defer cancel()
	k.write(out)
}

// openStore opens the store of checkpoints. A host that ends at once needs it for its last
// checkpoint.
func openStore(ctx context.Context, procs *proc.Register, t team.Team, teamDir string) (*checkpoint.Store, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCheckpoint)
	defer cancel()
	return checkpoint.Open(ctx, procs, t.Dir, t.Name, teamDir)
}

// wait waits for the next change, or until a checkpoint is due.
func (k *keeper) wait(ctx context.Context) {
	if !k.due.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, k.due)
		defer cancel()
	}
	if err := k.host.Replica.Wait(ctx, k.seen); err != nil && ctx.Err() == nil {
		select { // the same trouble ends the host
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// look reads what happened, and makes the next checkpoint due earlier for it.
func (k *keeper) look(ctx context.Context) {
	by := func(delay time.Duration) {
		if at := time.Now().Add(delay); k.due.IsZero() || at.Before(k.due) {
			k.due = at
		}
	}
	every := checkpoints(k.host.Replica.Team())
	for r, err := range k.host.Replica.Read(ctx, k.seen) {
		if err != nil {
			return
		}
		k.seen, k.quiet = r.Seq, false
		by(every)
		for _, e := range r.Events {
			switch e.(type) {
			case *team.TaskCompleted:
				by(min(completionDelay, every))
			case *team.MessageSent:
				if k.mail++; k.mail >= manyMessages {
					by(0)
				}
			}
		}
	}
}

func (k *keeper) write(ctx context.Context) {
	h := k.host
	k.due, k.mail = time.Time{}, 0
	if h.Replica.Team().CleanedUp {
		return
	}
	what := beside(ctx, h.Machine.Shared, h.teamDir())
	what.Nested = k.tree.checkpoints
	made, err := k.store.Write(ctx, h.Replica, what)
	switch {
	case err == nil:
		h.covered.Store(made.Seq)
		if made.Notice != "" && made.Notice != k.told && made.Notice != k.store.Notice() {
			h.Log(made.Notice)
		}
		k.told = made.Notice
	case ctx.Err() != nil:
	case err.Error() != k.told:
		k.told = err.Error()
		h.Log(err.Error())
	}
	k.quiet = err == nil
	// the next change tries it again anyway; what the teams in this one do may be no change here
	if err != nil && !checkpoint.Lasting(err) || nesting(h.Replica.Team()) {
		k.due = time.Now().Add(checkpoints(h.Replica.Team()))
	}
}

// beside returns the other contents of a checkpoint, besides the team's state.
func beside(ctx context.Context, in store.Team, teamDir string) checkpoint.Beside {
	b := checkpoint.Beside{Heartbeats: map[string]team.Time{}, Except: ownFolders(teamDir)}
	shared := filestore.Or(in, teamDir)
	beats, _ := heartbeat.In(shared).All(ctx) // a checkpoint is valid without them
	for name, beat := range beats {
		b.Heartbeats[name] = team.Time(beat.At)
	}
	if b.Completed, _ = shared.Get(ctx, store.CompletedKey); len(b.Completed) > mostRecord {
		b.Completed = nil
	}
	return b
}

// ownFolders returns the folders of cadre and of Claude Code. Where a project contains them, they
// are not part of its work.
func ownFolders(teamDir string) []string {
	claude := os.Getenv("CLAUDE_CONFIG_DIR")
	if user, err := os.UserHomeDir(); err == nil && claude == "" {
		claude = filepath.Join(user, ".claude")
	}
	var all []string
	for _, dir := range []string{filepath.Dir(filepath.Dir(teamDir)), claude} {
		if real, err := filepath.EvalSymlinks(dir); err == nil && dir != "" {
			all = append(all, real)
		}
	}
	return all
}

// Checkpoint makes a checkpoint by hand, from a process that is not a host of the team, and first
// of the teams in it. The paths, from the top of the work tree, are included from now on whatever
// they contain.
func Checkpoint(ctx context.Context, rep *replica.Replica, teamDir string,
	include ...string) (checkpoint.Checkpoint, error) {
	procs, err := proc.Open("")
	if err != nil {
		return checkpoint.Checkpoint{}, err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	t := rep.Team()
	store, err := checkpoint.Open(ctx, procs, t.Dir, t.Name, teamDir)
	if err != nil {
		return checkpoint.Checkpoint{}, err
	}
	what := beside(ctx, nil, teamDir)
	what.Include = include
	what.Nested = (&tree{replica: rep, folder: teamDir}).checkpoints
	return store.Write(ctx, rep, what)
}
