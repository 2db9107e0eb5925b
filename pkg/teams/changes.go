package teams

import (
	"context"

	"cadre/internal/run"
	"cadre/internal/team"
)

// FileChange is one difference between a team file and the unfinished team that was made from it.
type FileChange struct {
	What string // team, parameter, member or task
	Name string
	Does ChangeKind // the action for it
	Keys []KeyChange
	Why  string // why it is kept, what its redo leaves as it is, or that it failed before or was skipped
}

// KeyChange is a key of the team file that changed. From is its value in the team, and To its value
// in the file. "" means the default.
type KeyChange struct{ Key, From, To string }

// ChangeKind is the action for a difference.
type ChangeKind string

// The actions for a difference.
const (
	ChangeAdd    ChangeKind = run.ChangeAdd    // a task is added, a member is spawned
	ChangeUpdate ChangeKind = run.ChangeUpdate // the keys get their new values
	ChangeRemove ChangeKind = run.ChangeRemove // a task is deleted, a member is asked to end
	ChangeKeep   ChangeKind = run.ChangeKeep   // a task stays as it is, for the reason Why
	ChangeRedo   ChangeKind = run.ChangeRedo   // a completed task is done again
)

// follow applies a changed team file before a run.
func (t *Team) follow(ctx context.Context, o RunOptions) error {
	switch of := t.of.Team(); {
	case o.file == nil && len(o.Redo) > 0:
		return refuse(ErrInvalid, "RunOptions.Redo is for options that come from a team file; call LoadTeamFile")
	case o.file == nil || of.Origin != o.origin || of.Ended():
		return nil
	}
	_, err := run.Follow(ctx, t.of, o.file, o.Redo, func(c run.Changes) error {
		if o.Changed == nil {
			return team.Refuse(team.NotReady, "%s was changed since team %s was made from it; set RunOptions.Changed "+
				"to apply the changes", c.Path, c.Team)
		}
		var all []FileChange
		for _, one := range c.All {
			change := FileChange{What: one.What, Name: one.Name, Does: ChangeKind(one.Does), Why: one.Why}
			for _, k := range one.Keys {
				change.Keys = append(change.Keys, KeyChange(k))
			}
			all = append(all, change)
		}
		return o.Changed(all)
	})
	return err
}
