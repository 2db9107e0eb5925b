package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cadre/internal/git/checkpoint"
	"cadre/internal/host"
	"cadre/internal/journal/store"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/liveness/leader"
	"cadre/internal/replica"
	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// PushOptions configure a push.
type PushOptions struct {
	Options
	Remote  string   // name of the remote; "" for git's default remote for a push
	Include []string // paths from the top of the work tree that are carried whatever they contain
	Head    bool     // push the commit of a consolidated team, too
	Yes     bool     // the user has agreed to a first push to the remote
	Release bool     // release the team on this machine first
	Ours    bool     // of two histories, the local one continues
}

// Pushed is the result of a push.
type Pushed struct {
	checkpoint.Checkpoint
	Remote   checkpoint.Remote
	New      bool // the remote received something new
	Released bool
	Head     PushedCommit
}

// UnconfirmedError reports that the user has not yet agreed to a first push of the team to a
// remote. It lists what the push would send.
type UnconfirmedError struct{ checkpoint.Outgoing }

func (e *UnconfirmedError) Error() string {
	o := e.Outgoing
	parts := []string{team.Count(o.Records, "record"), team.Count(o.Messages, "message"), team.Count(o.Tasks, "task"),
		team.Count(o.Commits, "commit") + " with " + team.Count(o.Files, "file")}
	branches := "no branches of members"
	if len(o.Branches) > 0 {
		branches = "the branches " + strings.Join(o.Branches, ", ")
	}
	if len(o.Teams) > 0 {
		branches += ", with the teams in it: " + strings.Join(o.Teams, ", ")
	}
	return fmt.Sprintf("the first push to %s (%s) sends %s, and %s", o.Remote.Name, o.Remote.URL,
		strings.Join(parts, ", "), branches)
}

// SuspectError reports commits with files that a checkpoint leaves out by default. Commits
// cannot be changed, so the user has to decide that they are pushed.
type SuspectError struct {
	Remote   string
	Suspects []checkpoint.Left
	Unseen   int
}

func (e *SuspectError) Error() string {
	var names []string
	for i, s := range e.Suspects {
		if i == mostPaths {
			names = append(names, fmt.Sprintf("and %d more", len(e.Suspects)-i))
			break
		}
		names = append(names, s.String())
	}
	return fmt.Sprintf("commits of the team that are not yet on %s contain %s", e.Remote, strings.Join(names, ", "))
}

// releaseTime bounds how long the sessions of a released team may take to end.
const releaseTime = time.Minute

// Push makes a checkpoint of the local team and pushes its branch. With Release, it releases the
// team and pushes a second checkpoint. If the remote has another history, the error is a
// [*checkpoint.ForkError].
func Push(ctx context.Context, o PushOptions) (*Pushed, error) {
	procs, err := proc.Open("")
	if err != nil {
		return nil, err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	var pushed *Pushed
	err = o.opened(ctx, func(rep *replica.Replica, folder string) error {
		t := rep.Team()
		if err := t.CheckOurs(); err != nil {
			return err
		}
		o.Dir = t.Dir
		var err error
		if o.Release {
			err = o.consolidating(ctx, t)
		}
		if err != nil {
			return err
		}
		if pushed, err = o.push(ctx, procs, rep, folder); err != nil {
			return err
		}
		if o.Head {
			if pushed.Head, err = pushHead(ctx, procs, pushed.Remote, t, folder); err != nil {
				return err
			}
		}
		if !o.Release {
			return nil
		}
		// Release the team only after the first push has succeeded: a team that is released and
		// exists nowhere else would be stuck.
		if err := o.release(ctx, procs, rep, folder); err != nil {
			return err
		}
		last, err := o.push(ctx, procs, rep, folder)
		if err != nil {
			pushed.Released = true
			return err
		}
		last.Head, pushed = pushed.Head, last
		return nil
	})
	return pushed, err
}

// CanPush asks the remote before anything changes: it fails where the repository has no such
// remote, or the remote does not answer. first reports that the remote has nothing of the team, and
// that the user has not agreed to push it there.
func CanPush(ctx context.Context, o PushOptions) (first bool, err error) {
	procs, err := proc.Open("")
	if err != nil {
		return false, err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	err = o.opened(ctx, func(rep *replica.Replica, folder string) error {
		store, err := checkpoint.Open(ctx, procs, rep.Team().Dir, o.Team, folder)
		if err != nil {
			return err
		}
		remote, err := store.Remote(ctx, o.Remote)
		if err != nil {
			return err
		}
		if _, err := store.Fetch(ctx, remote); !errors.Is(err, checkpoint.ErrNone) {
			return err
		}
		agreed, err := readAgreed(filepath.Join(folder, agreedFile))
		first = !slices.Contains(agreed, remote.Key())
		return err
	})
	return first, err
}

// release ends the sessions of the team and releases it, with the teams in it.
func (o *PushOptions) release(ctx context.Context, procs *proc.Register, rep *replica.Replica, folder string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, releaseTime,
		fmt.Errorf("the sessions did not end within %s", team.Span(releaseTime)))
	defer cancel()
	if t := rep.Team(); t.Released == (team.Released{}) {
		lock, err := leader.Claim(ctx, filestore.Team(folder))
		if errors.Is(err, store.ErrHeld) {
			return team.Refuse(team.NotReady, "a process leads team %s; end it first", o.Team).
				With(team.Hint{Action: team.ActShowAlive, Team: o.Team})
		}
		if err != nil {
			return err
		}
		defer lock.Release()
		if t.LeadSession != "" && t.LeadSession != team.User { // the session has ended, or the lock would be held
			if _, err := rep.Do(ctx, team.Command{Actor: team.User, Body: &team.AttachLead{Session: team.User,
				TakeOver: true}}); err != nil {
				return err
			}
		}
		if err := host.RecordWork(ctx, rep, procs, folder, "", o.tell); err != nil {
			return err
		}
		name, _ := os.Hostname()
		if _, err := rep.Do(ctx, team.Command{Actor: team.User, Body: &team.ReleaseTeam{Machine: name}}); err != nil {
			return err
		}
	}
	o.did("released")
	if err := host.Settle(ctx, filestore.Team(folder), filepath.Join(folder, "hosts"), o.Dir, o.tell); err != nil {
		return &team.Error{Code: team.NotReady, Text: fmt.Sprintf("this machine has released team %s, but a process "+
			"of it is still running: %v; push again", o.Team, err)}
	}
	o.did("ended")
	name, _ := os.Hostname()
	return o.releaseNested(ctx, procs, rep.Team(), name)
}

func (o *Options) tell(text string) { o.log("%s", text) }

// push makes a new checkpoint and pushes it to the remote.
func (o *PushOptions) push(ctx context.Context, procs *proc.Register, rep *replica.Replica,
	folder string) (*Pushed, error) {
	store, err := checkpoint.Open(ctx, procs, rep.Team().Dir, o.Team, folder)
	if err != nil {
		return nil, err
	}
	remote, err := store.Remote(ctx, o.Remote)
	if err != nil {
		return nil, err
	}
	if err := here(ctx, store, rep, folder, o.Ours); err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		made, err := host.Checkpoint(ctx, rep, folder, o.Include...)
		if err != nil {
			return nil, err
		}
		if made.Commit == "" {
			return nil, errors.New(made.Notice)
		}
		o.did("checkpoint")
		if made.Commit, err = o.follow(ctx, store, remote, rep, folder, made.Commit); err != nil {
			return nil, err
		}
		if made.Commit == "" { // the branch was moved, so it has to be examined again
			continue
		}
		p := &Pushed{Checkpoint: made, Remote: remote, Released: rep.Team().Released != team.Released{}}
		there, err := store.Found(ctx)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(there, func(f checkpoint.Found) bool {
			return f.Ref == remote.Name+"/cadre/"+o.Team &&
				f.Commit == made.Commit
		}) {
			return p, nil
		}
		has := slices.ContainsFunc(there, func(f checkpoint.Found) bool {
			return f.Ref == remote.Name+"/cadre/"+
				o.Team && f.Team == made.Team
		})
		if err := o.agree(ctx, store, remote, made.Commit, rep.Team().Base.Commit, folder, has); err != nil {
			return nil, err
		}
		o.did("agreed")
		err = store.Push(ctx, remote, made.Commit)
		if errors.Is(err, checkpoint.ErrMoved) && try < 3 {
			continue
		}
		if err != nil {
			return nil, err
		}
		o.did("pushed")
		p.New = true
		return p, nil
	}
}

// follow makes sure that the commit is a successor of what the remote has. It returns the commit to
// push, or "" if it moved the branch.
func (o *PushOptions) follow(ctx context.Context, store *checkpoint.Store, remote checkpoint.Remote,
	rep *replica.Replica, folder, commit string) (string, error) {
	there, err := store.Fetch(ctx, remote)
	if errors.Is(err, checkpoint.ErrNone) {
		return commit, nil
	}
	if err != nil {
		return "", err
	}
	o.did("fetched")
	if in, err := store.Leads(ctx, there.Commit, commit); in || err != nil {
		return commit, err
	}
	found, err := store.Found(ctx)
	if err != nil {
		return "", err
	}
	c, err := compare(ctx, store, rep, folder, there, found)
	if err != nil {
		return "", err
	}
	var ours checkpoint.Side
	rep.View(func(s *team.State) { ours = side(s, c.common) })
	if c.relation == checkpoint.Ahead && !o.Ours {
		return "", &MovedError{Team: o.Team, There: there.Side(c.common)}
	}
	if !o.Ours {
		return "", &checkpoint.ForkError{Team: o.Team, Since: c.common, Sides: []checkpoint.Side{ours,
			there.Side(c.common)}}
	}
	if err := store.Settle(ctx, commit, there.Commit); err != nil {
		return "", err
	}
	o.did("settled")
	return "", nil
}

// side describes the local team as one of two histories.
func side(s *team.State, common int64) checkpoint.Side {
	name, _ := os.Hostname()
	return checkpoint.Side{Machine: name, At: s.Team().UpdatedAt, Records: s.Position() - common}
}

// MovedError reports that the team continued elsewhere, from a state that includes everything here.
type MovedError struct {
	Team  string
	There checkpoint.Side
}

func (e *MovedError) Error() string {
	return fmt.Sprintf("team %s continued elsewhere. %s", e.Team, e.There)
}

func (e *MovedError) Unwrap() error { return checkpoint.ErrForked }

// agree makes sure that the user agrees to what is pushed to a remote. A remote that already has
// the team needs no further consent.
func (o *PushOptions) agree(ctx context.Context, store *checkpoint.Store, remote checkpoint.Remote, commit, before,
	folder string, has bool) error {
	out, err := store.Outgoing(ctx, remote, commit, before)
	if err != nil {
		return err
	}
	if len(out.Suspects) > 0 {
		return &SuspectError{Remote: remote.Name, Suspects: out.Suspects, Unseen: out.Unseen}
	}
	if out.Unseen > 0 {
		o.log("%s in the commits were not searched for secrets, because there are too many",
			team.Count(out.Unseen, "file"))
	}
	if has {
		return nil
	}
	path := filepath.Join(folder, agreedFile)
	agreed, err := readAgreed(path)
	if err != nil || slices.Contains(agreed, remote.Key()) {
		return err
	}
	if !o.Yes {
		return &UnconfirmedError{out}
	}
	text, err := json.Marshal(append(agreed, remote.Key()))
	if err != nil {
		return err
	}
	return atomicfile.Write(path, append(text, '\n'))
}

// agreedFile lists, in the team's folder, the remotes that the user agreed to push to.
const agreedFile = "pushed.json"

func readAgreed(path string) (agreed []string, err error) {
	text, err := regularfile.Read(path, 1<<20)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil && json.Unmarshal(text, &agreed) != nil { // then the user is asked again
		agreed = nil
	}
	return agreed, err
}

// Here makes sure that no other copy of the team is ahead of the local one, as far as the
// repository shows: no checkpoint has another history, or later records. With ours, the user has
// decided that the local history continues and the others are left behind.
func Here(ctx context.Context, rep *replica.Replica, folder string, ours bool) error {
	procs, err := proc.Open("")
	if err != nil {
		return err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	t := rep.Team()
	store, err := checkpoint.Open(ctx, procs, t.Dir, t.Name, folder)
	if err != nil || store.Notice() != "" {
		return err
	}
	return here(ctx, store, rep, folder, ours)
}

func here(ctx context.Context, store *checkpoint.Store, rep *replica.Replica, folder string, ours bool) error {
	found, err := store.Found(ctx)
	if damage := (*checkpoint.DamageError)(nil); errors.Is(err, checkpoint.ErrNone) || errors.As(err, &damage) {
		return nil // without checkpoints there is no other history
	}
	if err != nil {
		return err
	}
	var own checkpoint.Found
	for _, f := range found {
		if f.Own {
			own = f
		}
	}
	t := rep.Team()
	var refusal error
	var leave []string
	for _, f := range found {
		c, err := compare(ctx, store, rep, folder, f, found)
		if err != nil {
			return err
		}
		relation, common, history := c.relation, c.common, t.Restored.ID
		var mine checkpoint.Side
		rep.View(func(s *team.State) { mine = side(s, common) })
		if relation == checkpoint.Behind || relation == checkpoint.Another {
			continue
		}
		if !f.Own && own.History == history { // decided earlier, if the team's branch contains it
			if in, err := store.Leads(ctx, f.Commit, own.Commit); err != nil {
				return err
			} else if in {
				continue
			}
		}
		leave = append(leave, f.Commit)
		if refusal == nil && relation == checkpoint.Ahead {
			refusal = &MovedError{Team: t.Name, There: f.Side(common)}
		} else if refusal == nil {
			refusal = &checkpoint.ForkError{Team: t.Name, Since: common, Sides: []checkpoint.Side{mine, f.Side(common)}}
		}
	}
	if refusal == nil || !ours {
		return refusal
	}
	var history string
	rep.View(func(s *team.State) { history = s.Team().Restored.ID })
	for _, f := range found { // find the last checkpoint of this history, wherever the branch is now
		last, err := store.Last(ctx, history, f.Commit)
		if err != nil {
			return err
		}
		if last != "" {
			return store.Settle(ctx, last, leave...)
		}
	}
	return team.Hinted(fmt.Errorf("%w, and there is no checkpoint of the local history", refusal),
		team.Hint{Action: team.ActRenameBranch, Team: t.Name, Name: "cadre/" + t.Name, Dir: t.Dir})
}

// PushedCommit is the commit of a consolidated team, and the remote's branch that it was pushed to.
type PushedCommit struct{ Commit, Branch string } // "" if there was nothing to commit

// pushHead pushes the commit of a consolidated team. The remote's branch has the name of the branch
// that is checked out.
func pushHead(ctx context.Context, procs *proc.Register, to checkpoint.Remote, t team.Team,
	folder string) (PushedCommit, error) {
	if c := t.Consolidation; c.Step != team.Done || c.Commit == "" {
		return PushedCommit{}, nil
	}
	store, err := checkpoint.Open(ctx, procs, t.Dir, t.Name, folder)
	if err != nil {
		return PushedCommit{}, err
	}
	commit := t.Consolidation.Commit
	branch, err := store.PushHead(ctx, to, commit)
	if err != nil {
		return PushedCommit{}, err
	}
	return PushedCommit{commit, branch}, nil
}
