package checkpoint

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Listed is the last checkpoint on a branch, at a glance.
type Listed struct {
	Name string `json:"name"` // name of the team
	// remote that had the branch at the last fetch; "" for a branch of the repository itself
	Remote     string          `json:"remote,omitempty"`
	Commit     string          `json:"commit"`              // id of the checkpoint's commit
	Team       string          `json:"teamId,omitempty"`    // id of the team; "" if the checkpoint cannot be read
	Seq        int64           `json:"seq,omitempty"`       // number of records in the checkpoint
	Status     team.TeamStatus `json:"status,omitempty"`    // pending, active, consolidating, complete or aborted
	Pending    int             `json:"pending"`             // number of pending tasks
	InProgress int             `json:"inProgress"`          // number of tasks in progress
	Completed  int             `json:"completed"`           // number of completed tasks
	UpdatedAt  team.Time       `json:"updatedAt,omitempty"` // when the last of its records was written
	Members    []string        `json:"members,omitempty"`   // names of the lead and the teammates
	Why        string          `json:"why,omitempty"`       // why the checkpoint cannot be read
	Children   []string        `json:"children,omitempty"`  // names of the teams in it that the checkpoint carries

	// teams in it that the checkpoint carries, and that have no branch of their own in that place
	Nested   []Listed `json:"-"`
	Parent   string   `json:"-"` // id of the team that it is nested in; "" for none
	Machine  string   `json:"-"` // that made it
	Released bool     `json:"-"` // the machine released the team with it
	Work     Work     `json:"-"` // that it carries

	carried []Nested
}

// Where returns git's name of the branch.
func (l Listed) Where() string {
	if l.Remote != "" {
		return l.Remote + "/cadre/" + l.Name
	}
	return "cadre/" + l.Name
}

// Carries reports whether the checkpoint carries one of the team with that id.
func (l Listed) Carries(id string) bool {
	return slices.ContainsFunc(l.carried, func(n Nested) bool { return n.Team == id })
}

// List returns the checkpoints in the repository of the directory, sorted by team. They are on its
// own branches, and on those of its remotes as of the last fetch. A directory outside a repository
// has none. A checkpoint of a newer cadre is listed as far as it is understood.
func List(ctx context.Context, procs *proc.Register, dir string) ([]Listed, error) {
	repo, why, err := find(ctx, procs, dir)
	if err != nil || why != "" {
		return nil, err
	}
	r := repo.runner(procs)
	out, err := r.Text(ctx, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/cadre",
		"refs/remotes/*/cadre/*")
	if err != nil || out == "" {
		return nil, err
	}
	var all []Listed
	var specs []string
	for line := range strings.Lines(out) {
		id, ref, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		where, name, ok := strings.Cut(strings.TrimPrefix(ref, "refs/"), "/cadre/")
		if ref, ok := strings.CutPrefix(ref, "refs/heads/cadre/"); ok {
			where, name = "heads", ref
		}
		if (where == "heads" || ok) && team.ValidName(name) {
			all = append(all, Listed{Name: name, Remote: strings.TrimPrefix(strings.TrimPrefix(where, "heads"),
				"remotes/"), Commit: id})
			specs = append(specs, id+":.claude/teams/"+name+"/"+stateFile)
		}
	}
	b := newBranch(procs, repo, "")
	found, err := b.objects(ctx, specs...)
	if err != nil {
		return nil, err
	}
	var read []Listed
	for i, o := range found {
		if o != nil { // otherwise it is a foreign branch with such a name
			all[i].glance(o.data)
			read = append(read, all[i])
		}
	}
	slices.SortStableFunc(read, func(a, b Listed) int { return strings.Compare(a.Name, b.Name) })
	own := func(n Listed) bool {
		return slices.ContainsFunc(read, func(l Listed) bool { return l.Team == n.Team && l.Remote == n.Remote })
	}
	return read, b.addNested(ctx, read, own, team.MostDepth)
}

// addNested adds the teams that the checkpoints of the list carry, so many levels deep. It leaves
// out those that are listed by themselves.
func (b *branch) addNested(ctx context.Context, all []Listed, own func(Listed) bool, levels int) error {
	var of []*Listed
	var below []Listed
	var specs []string
	for i := range all {
		for _, n := range all[i].carried {
			one := Listed{Name: n.Name, Remote: all[i].Remote, Commit: n.Commit, Team: n.Team}
			if n.Commit == "" || levels == 0 || !team.ValidName(n.Name) || own(one) {
				continue
			}
			of, below = append(of, &all[i]), append(below, one)
			specs = append(specs, b.of(n.Name).object(n.Commit, stateFile))
		}
	}
	if len(below) == 0 {
		return nil
	}
	found, err := b.objects(ctx, specs...)
	if err != nil {
		return err
	}
	for i, o := range found {
		if below[i].Why = "its " + stateFile + " is missing"; o != nil {
			below[i].Why = ""
			below[i].glance(o.data)
		}
	}
	if err := b.addNested(ctx, below, own, levels-1); err != nil {
		return err
	}
	for i, one := range below {
		of[i].Nested = append(of[i].Nested, one)
	}
	return nil
}

// glance reads what a list shows of a checkpoint. Unlike a restoration, that needs no complete
// checkpoint and no known format.
func (l *Listed) glance(text []byte) {
	var doc struct {
		TeamID    string          `json:"team_id"`
		TeamName  string          `json:"team_name"`
		Parent    string          `json:"parent_team_id"`
		Sequence  int64           `json:"checkpoint_sequence"`
		Updated   team.Time       `json:"updated_utc_ms"`
		Status    team.TeamStatus `json:"status"`
		Teammates []struct {
			ID string `json:"id"`
		} `json:"teammates"`
		Queue struct {
			Pending    []string          `json:"pending"`
			InProgress []json.RawMessage `json:"in_progress"`
			Count      int               `json:"completed_count"`
		} `json:"task_queue"`
		Released bool     `json:"released"`
		Work     Work     `json:"work"`
		Nested   []Nested `json:"child_teams"`
	}
	if err := json.Unmarshal(text, &doc); err != nil || doc.TeamID == "" || doc.TeamName != l.Name {
		l.Why = "its " + stateFile + " is damaged, or of another team"
		return
	}
	l.Team, l.Seq, l.Status, l.UpdatedAt = doc.TeamID, doc.Sequence, doc.Status, doc.Updated
	l.Pending, l.InProgress, l.Completed = len(doc.Queue.Pending), len(doc.Queue.InProgress), doc.Queue.Count
	l.Parent, l.Machine, l.Released, l.Work = doc.Parent, doc.Work.Machine, doc.Released, doc.Work
	l.carried = doc.Nested
	for _, n := range doc.Nested {
		if n.Commit != "" {
			l.Children = append(l.Children, n.Name)
		}
	}
	for _, m := range doc.Teammates {
		l.Members = append(l.Members, m.ID)
	}
}
