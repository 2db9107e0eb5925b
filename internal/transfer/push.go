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
	"cadre/internal/liveness/leader"
	"cadre/internal/replica"
	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// PushOptions say what is pushed where.
type PushOptions struct {
	Options
	Remote  string   // its name; "" for the one that git would push to
	Include []string // paths from the top of the work tree that are carried whatever is in them
	Yes     bool     // what goes to a remote for the first time was agreed to
	Release bool     // this machine lets go of the team first
	Ours    bool     // of two histories the one that is here continues
}

// Pushed is what a push brought where.
type Pushed struct {
	checkpoint.Checkpoint
	Remote   checkpoint.Remote
	New      bool // the remote has something that it had not
	Released bool
}

// UnconfirmedError says what would go to a remote that this team was never pushed to, and that
// nobody agreed to it.
type UnconfirmedError struct{ checkpoint.Outgoing }

func (e *UnconfirmedError) Error() string {
	o := e.Outgoing
	parts := []string{count(int(o.Records), "record"), count(int(o.Messages), "message"), count(o.Tasks, "task"),
		count(o.Commits, "commit") + " with " + count(o.Files, "file")}
	branches := "no branches of members"
	if len(o.Branches) > 0 {
		branches = "the branches " + strings.Join(o.Branches, ", ")
	}
	return fmt.Sprintf("the first push to %s (%s) brings there: %s, and %s", o.Remote.Name, o.Remote.URL,
		strings.Join(parts, ", "), branches)
}

// SuspectError says that commits hold what would not be carried by itself. They cannot be changed:
// only the user can say that they are to go.
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
	return fmt.Sprintf("commits of the team that %s has not hold %s", e.Remote, strings.Join(names, ", "))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// releaseTime bounds the end of the sessions of a team that is let go of.
const releaseTime = time.Minute

// Push makes a checkpoint of the team that is here, and pushes its branch. With Release it does so
// once more when the team was let go of. Where the remote has another history the error is a
// [*checkpoint.ForkError].
func Push(ctx context.Context, o PushOptions) (*Pushed, error) {
	procs, err := proc.Open("")
	if err != nil {
		return nil, err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	var pushed *Pushed
	_, err = o.opened(ctx, func(rep *replica.Replica, folder string) error {
		t := rep.Team()
		if err := t.CheckOurs(); err != nil {
			return err
		}
		o.Dir = t.Dir
		var err error
		if pushed, err = o.push(ctx, procs, rep, folder); err != nil || !o.Release {
			return err
		}
		// Only now that the remote has the team, and takes more of it: a team that was let go of
		// and is nowhere else would help nobody.
		if err := o.release(ctx, procs, rep, folder); err != nil {
			return err
		}
		pushed, err = o.push(ctx, procs, rep, folder)
		return err
	})
	return pushed, err
}

// release ends the sessions of the team and lets go of it.
func (o *PushOptions) release(ctx context.Context, procs *proc.Register, rep *replica.Replica, folder string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, releaseTime,
		fmt.Errorf("not everybody has ended within %s", releaseTime))
	defer cancel()
	if t := rep.Team(); t.Released == (team.Released{}) {
		lock, err := leader.Claim(folder)
		if errors.Is(err, filelock.ErrHeld) {
			return &team.Error{Code: team.NotReady, Text: fmt.Sprintf("a process leads team %s; end it first: cadre "+
				"probe %s shows which", o.Team, o.Team)}
		}
		if err != nil {
			return err
		}
		defer lock.Unlock()
		if t.LeadSession != "" && t.LeadSession != team.User { // it has ended, or the lock would be held
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
	if err := host.Settle(ctx, filepath.Join(folder, "hosts"), o.Dir, o.tell); err != nil {
		return &team.Error{Code: team.NotReady, Text: fmt.Sprintf("this machine has let go of team %s, but a process "+
			"of it is still there: %v; push again", o.Team, err)}
	}
	o.did("ended")
	return nil
}

func (o *Options) tell(text string) { o.log("%s", text) }

// push brings the remote up to a new checkpoint.
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
	if err := here(ctx, store, rep, o.Ours); err != nil {
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
		if made.Commit, err = o.follow(ctx, store, remote, rep, made.Commit); err != nil {
			return nil, err
		}
		if made.Commit == "" { // the branch was moved, and has to be looked at again
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

// follow makes sure that the commit follows what the remote has. It returns the commit to push, ""
// where the branch was moved for that.
func (o *PushOptions) follow(ctx context.Context, store *checkpoint.Store, remote checkpoint.Remote,
	rep *replica.Replica, commit string) (string, error) {
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
	var relation checkpoint.Relation
	var common int64
	var ours checkpoint.Side
	rep.View(func(s *team.State) {
		relation, common = there.Compare(s, found)
		ours = side(s, common)
	})
	if relation == checkpoint.Ahead && !o.Ours {
		return "", &MovedError{Team: o.Team, There: there.Side(common)}
	}
	if !o.Ours {
		return "", &checkpoint.ForkError{Team: o.Team, Since: common, Sides: []checkpoint.Side{ours,
			there.Side(common)}}
	}
	if err := store.Settle(ctx, commit, there.Commit); err != nil {
		return "", err
	}
	o.did("settled")
	return "", nil
}

// side is the team that is here as one of two histories.
func side(s *team.State, common int64) checkpoint.Side {
	name, _ := os.Hostname()
	return checkpoint.Side{Machine: name, At: s.Team().UpdatedAt, Records: s.Position() - common}
}

// MovedError says that the team continued elsewhere from all that is here.
type MovedError struct {
	Team  string
	There checkpoint.Side
}

func (e *MovedError) Error() string {
	return fmt.Sprintf("team %s continued elsewhere. %s", e.Team, e.There)
}

func (e *MovedError) Unwrap() error { return checkpoint.ErrForked }

// agree makes sure that what goes to a remote is what the user wants there. One that has the team
// needs no consent again.
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
		o.log("%s in the commits were not looked at for secrets, because there are so many", count(out.Unseen, "file"))
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

// agreedFile lists, in the team's folder, the places that the user agreed to push to.
const agreedFile = "pushed.json"

func readAgreed(path string) (agreed []string, err error) {
	text, err := regularfile.Read(path, 1<<20)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil && json.Unmarshal(text, &agreed) != nil { // then it is asked again
		agreed = nil
	}
	return agreed, err
}

// Here makes sure that the team that is here is the one that counts, as far as the repository
// knows: no checkpoint of it is of another history, or of a later time. With ours the user has said
// that this one continues: the others are left.
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
	return here(ctx, store, rep, ours)
}

func here(ctx context.Context, store *checkpoint.Store, rep *replica.Replica, ours bool) error {
	found, err := store.Found(ctx)
	if damage := (*checkpoint.DamageError)(nil); errors.Is(err, checkpoint.ErrNone) || errors.As(err, &damage) {
		return nil // there is nothing that could be another history
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
	name := rep.Team().Name
	var refusal error
	var leave []string
	for _, f := range found {
		var relation checkpoint.Relation
		var common int64
		var mine checkpoint.Side
		var history string
		rep.View(func(s *team.State) {
			relation, common = f.Compare(s, found)
			mine, history = side(s, common), s.Team().Restored.ID
		})
		if relation == checkpoint.Behind || relation == checkpoint.Another {
			continue
		}
		if !f.Own && own.History == history { // it was decided about, if our line has it
			if in, err := store.Leads(ctx, f.Commit, own.Commit); err != nil {
				return err
			} else if in {
				continue
			}
		}
		leave = append(leave, f.Commit)
		if refusal == nil && relation == checkpoint.Ahead {
			refusal = &MovedError{Team: name, There: f.Side(common)}
		} else if refusal == nil {
			refusal = &checkpoint.ForkError{Team: name, Since: common, Sides: []checkpoint.Side{mine, f.Side(common)}}
		}
	}
	if refusal == nil || !ours {
		return refusal
	}
	var history string
	rep.View(func(s *team.State) { history = s.Team().Restored.ID })
	for _, f := range found { // the last checkpoint of this history, wherever the branch is now
		last, err := store.Last(ctx, history, f.Commit)
		if err != nil {
			return err
		}
		if last != "" {
			return store.Settle(ctx, last, leave...)
		}
	}
	return fmt.Errorf("%w, and no checkpoint of the one that is here can be found; rename the branch of the other "+
		"one to keep it: git branch -m cadre/%s NAME", refusal, name)
}

// PushedCommit is the commit of a consolidated team, and the branch of a remote that names it.
type PushedCommit struct {
	Remote         checkpoint.Remote
	Commit, Branch string // "" where there was nothing to commit
}

// PushCommit pushes the commit of a team that was consolidated to the remote's branch of the name
// that is checked out.
func PushCommit(ctx context.Context, o PushOptions) (*PushedCommit, error) {
	procs, err := proc.Open("")
	if err != nil {
		return nil, err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	p := &PushedCommit{}
	_, err = o.opened(ctx, func(rep *replica.Replica, folder string) error {
		t := rep.Team()
		if c := t.Consolidation; c.Step != team.Done || c.Commit == "" {
			return nil
		}
		store, err := checkpoint.Open(ctx, procs, t.Dir, t.Name, folder)
		if err != nil {
			return err
		}
		if p.Remote, err = store.Remote(ctx, o.Remote); err != nil {
			return err
		}
		p.Commit = t.Consolidation.Commit
		p.Branch, err = store.PushHead(ctx, p.Remote, p.Commit)
		return err
	})
	return p, err
}
