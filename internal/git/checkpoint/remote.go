package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cadre/internal/git"
	"cadre/internal/team"
)

// Remote is a named remote of the project's repository.
type Remote = git.Remote

// ErrNoRemote reports that the repository does not have the remote.
var ErrNoRemote = errors.New("no remote")

// noRemote is an [ErrNoRemote] in the words for one case.
type noRemote string

func (e noRemote) Error() string        { return string(e) }
func (e noRemote) Is(target error) bool { return target == ErrNoRemote }

// way returns the runner for the remote: in the person's work tree, with the person's hooks and
// settings.
func (b *branch) way() git.Runner {
	r := b.git
	if b.top != "" {
		r = b.files
	}
	r.Patience = 0
	return r.ToRemote()
}

// Remote returns the remote of that name. For "" it is the one that git would push to:
// remote.pushDefault, else origin, else the only one.
func (s *Store) Remote(ctx context.Context, name string) (Remote, error) {
	b, ok := s.shelf.(*branch)
	if !ok {
		return Remote{}, noRemote(s.why + ", so it has no remote")
	}
	out, err := b.git.Text(ctx, "remote")
	if err != nil {
		return Remote{}, err
	}
	names := strings.Fields(out)
	if name == "" {
		name, _ = b.git.Text(ctx, "config", "--get", "remote.pushDefault")
	}
	switch {
	case name == "" && slices.Contains(names, "origin"):
		name = "origin"
	case name == "" && len(names) == 1:
		name = names[0]
	case name == "" && len(names) == 0:
		return Remote{}, team.Hinted(noRemote("the repository "+b.repo+" has no remote"),
			b.hint(team.ActAddRemote, "origin"))
	case name == "":
		return Remote{}, noRemote("the repository " + b.repo + " has several remotes; name one of " +
			strings.Join(names, ", "))
	case !slices.Contains(names, name):
		return Remote{}, team.Hinted(noRemote(fmt.Sprintf("the repository %s has no remote %q; its remotes are: %s",
			b.repo, name, strings.Join(names, ", "))), b.hint(team.ActAddRemote, name))
	}
	return b.git.RemoteNamed(ctx, name)
}

// Fetch fetches the team's branch from the remote; [ErrNone] if it has none. It moves only this
// repository's remote-tracking branch.
func (s *Store) Fetch(ctx context.Context, r Remote) (Found, error) {
	b := s.shelf.(*branch)
	track := "refs/remotes/" + r.Name + "/" + b.name
	err := b.way().RunOwn(ctx, track, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--refmap=", r.Name,
		"+"+b.ref()+":"+track)
	if refused, ok := errors.AsType[*git.Refusal](err); ok && strings.Contains(refused.Words,
		"couldn't find remote ref") {
		if err := b.git.UpdateOwn(ctx, track, "-d", track); err != nil { // the remote's branch was removed
			return Found{}, err
		}
		return Found{}, fmt.Errorf("%w of team %s: %s (%s) has no branch %s", ErrNone, s.team, r.Name, r.URL, b.name)
	}
	if err != nil {
		return Found{}, r.Harmless(err)
	}
	found, err := s.Found(ctx)
	if err != nil {
		return Found{}, err
	}
	for _, f := range found {
		if f.Ref == r.Name+"/"+b.name {
			return f, nil
		}
	}
	return Found{}, &DamageError{"the branch " + b.name + " of " + r.URL, "it holds no checkpoint of team " + s.team}
}

// ErrMoved reports that another clone has pushed in the meantime.
var ErrMoved = errors.New("the remote has another checkpoint by now")

// Push moves the remote's branch to the commit, which must be a successor of the branch. The user's
// hooks run, as with any push.
func (s *Store) Push(ctx context.Context, r Remote, commit string) error {
	b := s.shelf.(*branch)
	out, err := b.way().Run(ctx, nil, "push", "--porcelain", "--no-signed", r.Name, commit+":"+b.ref())
	if err == nil {
		return nil
	}
	if git.Rejected(out) {
		return fmt.Errorf("%w: %s", ErrMoved, r.Name)
	}
	return fmt.Errorf("push to %s: %w", r.Name, r.Harmless(err))
}

// Outgoing describes what a push would send to a remote.
type Outgoing struct {
	Remote   Remote
	Teams    []string // names of the teams in the team
	Records  int64    // of all these teams, as what follows
	Messages int64
	Tasks    int
	Branches []string // of members
	Commits  int      // of members and of the person, that the remote lacks
	Files    int      // in them
	Suspects []Left   // files in these commits that are large or likely contain a secret, and were not included
	Unseen   int      // files that were not checked, because there are too many
}

// leap is how far the numbers of messages jump when a team is restored.
const leap = 1000

// mostLooked bounds how many files of outgoing commits are checked.
const mostLooked = 20_000

// Outgoing determines what a push of the checkpoint would send to the remote, as far as this
// repository knows what the remote has. It does not search commits from before the team was created
// for secrets.
func (s *Store) Outgoing(ctx context.Context, r Remote, commit, before string) (Outgoing, error) {
	b := s.shelf.(*branch)
	o := Outgoing{Remote: r}
	at, err := b.loadAt(ctx, commit)
	if err != nil || at == nil {
		return o, err
	}
	tree, err := b.tree(ctx, at)
	if err != nil {
		return o, err
	}
	var checkpoints, include []string
	for i, one := range tree {
		doc := one.image.doc
		if i > 0 {
			o.Teams = append(o.Teams, doc.TeamName)
		}
		o.Records += doc.Sequence
		o.Messages += doc.MailboxSeq - leap*int64(len(doc.Before))
		o.Tasks += doc.Queue.Count + len(doc.Queue.Pending) + len(doc.Queue.InProgress)
		for _, t := range doc.Work.Branches {
			o.Branches = append(o.Branches, t.Name)
		}
		checkpoints, include = append(checkpoints, one.id), append(include, doc.Work.Include...)
	}
	not := []string{"--not", "--remotes=" + r.Name}
	if before != "" {
		if there, err := b.git.Holds(ctx, "cat-file", "-e", before+"^{commit}"); there && err == nil {
			not = append(not, before)
		}
	}
	blobs, paths, commits, err := b.carried(ctx, checkpoints, not, include)
	if err != nil {
		return o, err
	}
	o.Commits = commits
	if o.Files = len(blobs); o.Files > mostLooked {
		o.Unseen, blobs = o.Files-mostLooked, blobs[:mostLooked]
	}
	if len(blobs) == 0 {
		return o, nil
	}
	why, err := b.suspects(ctx, blobs)
	for id, reason := range why {
		o.Suspects = append(o.Suspects, Left{Path: strings.ToValidUTF8(paths[id], "\uFFFD"), Why: reason})
	}
	slices.SortFunc(o.Suspects, func(a, b Left) int { return strings.Compare(a.Path, b.Path) })
	return o, err
}

// carried returns the files of members' work that the checkpoints up to these commits bring, by
// their ids and paths, without the included ones, and how many commits of work there are. not
// excludes what is there already.
func (b *branch) carried(ctx context.Context, checkpoints, not, include []string) (blobs []string,
	paths map[string]string, commits int, err error) {
	line, err := b.git.Text(ctx, slices.Concat([]string{"rev-list", "--objects", "--no-object-names",
		"--first-parent"}, checkpoints, not)...)
	if err != nil {
		return nil, nil, 0, err
	}
	ours := map[string]bool{}
	for _, id := range strings.Fields(line) {
		ours[id] = true
	}
	all, err := b.git.Run(ctx, nil, slices.Concat([]string{"-c", "core.quotePath=false", "rev-list", "--objects"},
		checkpoints, not)...)
	if err != nil {
		return nil, nil, 0, err
	}
	var ids []string
	paths = map[string]string{}
	for one := range strings.Lines(string(all)) {
		id, path, named := strings.Cut(strings.TrimSuffix(one, "\n"), " ")
		switch {
		case ours[id]:
		case !named:
			commits++
		case path != "" && !covers(include, path):
			ids = append(ids, id)
			paths[id] = path
		}
	}
	kinds, err := b.git.Run(ctx, []byte(strings.Join(ids, "\n")+"\n"), "cat-file", "--batch-check=%(objecttype)")
	if err != nil {
		return nil, nil, 0, err
	}
	for i, kind := range strings.Fields(string(kinds)) {
		if kind == "blob" && i < len(ids) {
			blobs = append(blobs, ids[i])
		}
	}
	return blobs, paths, commits, nil
}

// PushHead pushes the commit to the remote's branch with the name of the branch that is checked
// out, and returns that name.
func (s *Store) PushHead(ctx context.Context, r Remote, commit string) (string, error) {
	b := s.shelf.(*branch)
	name, err := b.files.Text(ctx, "symbolic-ref", "--quiet", "--short", "HEAD")
	if err != nil {
		push := b.hint(team.ActPushCommit, r.Name)
		push.From = commit
		return "", team.Hinted(fmt.Errorf("no branch is checked out in %s, so the commit %.12s is not pushed", b.top,
			commit), push)
	}
	if _, err = b.way().Run(ctx, nil, "push", "--porcelain", r.Name, commit+":refs/heads/"+name); err != nil {
		return name, fmt.Errorf("the team is complete, and its commit %.12s is not on %s: %w", commit, r.Name,
			r.Harmless(err))
	}
	return name, nil
}
