// Package transport carries the work of a team's members between clones, through a git remote.
//
// # Authority
//
// The package decides what the remote has of a team while it works, below refs/cadre/ID, where no
// other team, and no person, has anything: the commit that the team starts from, and the work of
// each member. Neither is a branch, so nobody's automation starts for it. In the clone the package
// moves the branches of members alone. It touches no work tree.
//
// # A member's branch between two clones
//
//	clone A ──Send──▶ remote ──Fetch──▶ clone B ──Take──▶ its branch is made, or moves on
//	                                                      other work on that branch: it is kept on
//	                                                      a branch of its own
//
// # Guarantees
//
//   - Send returns without an error only when the remote has the commit.
//   - Two clones that both added to a member's work are noticed: Send returns [ErrOther], and Take
//     keeps both.
//   - A branch that an earlier team of the same name left in a clone is not taken for the member's.
//   - After a kill between any two steps, the same call finishes what it began.
package transport

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cadre/internal/git"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Road leads from a clone to the remote of a team.
type Road struct {
	git    git.Runner
	remote git.Remote
	team   team.Team
}

// Open returns the road from the repository of that directory. The error says what to do if the
// repository does not have the team's remote.
func Open(ctx context.Context, procs *proc.Register, dir string, t team.Team) (*Road, error) {
	g := git.Runner{Procs: procs, Dir: dir}
	remote, err := g.RemoteNamed(ctx, t.Remote)
	if refused, is := errors.AsType[*git.Refusal](err); is {
		return nil, team.Refuse(team.NotFound, "the repository of %s has no remote %s, through which the work of "+
			"team %s travels: %s", dir, t.Remote, t.Name, refused.Words).
			With(team.Hint{Action: team.ActAddRemote, Name: t.Remote, Dir: dir})
	}
	if err != nil {
		return nil, err
	}
	return &Road{g, remote, t}, nil
}

// ours begins the references of the team, on the remote and in the clone, where they are as they
// were last fetched or sent.
func (r *Road) ours() string { return "refs/cadre/" + r.team.ID + "/" }

func (r *Road) base() string              { return r.ours() + "base" }
func (r *Road) work(member string) string { return r.ours() + "work/" + member }
func (r *Road) branch(member string) string {
	return "refs/heads/" + team.BranchOf(r.team.Name, member)
}

func (r *Road) aside() string { return r.ours() + "aside/" }

// begun is a reference in the clone alone. It says that the member's branch there is this team's.
func (r *Road) begun(member string) string { return r.ours() + "begun/" + member }

// ErrOther reports that the remote has work of a member that this clone does not have.
var ErrOther = errors.New("the remote has other work of the member")

// SendBase sends the commit that the team starts from, so that every clone can have it.
func (r *Road) SendBase(ctx context.Context) error {
	return r.send(ctx, r.team.Base.Commit, r.base())
}

// Send sends the work on the branch of a member. It does nothing if there is no such branch.
func (r *Road) Send(ctx context.Context, member string) error {
	commit, err := r.commit(ctx, r.branch(member))
	if err != nil || commit == "" {
		return err
	}
	return r.send(ctx, commit, r.work(member))
}

func (r *Road) send(ctx context.Context, commit, ref string) error {
	if there, err := r.commit(ctx, ref); there == commit || err != nil {
		return err
	}
	out, err := r.git.ToRemote().Run(ctx, nil, "push", "--porcelain", "--no-signed", r.remote.Name, commit+":"+ref)
	if err == nil {
		return r.git.UpdateOwn(ctx, ref, ref, commit)
	}
	if git.Rejected(out) {
		return fmt.Errorf("%w: %s", ErrOther, ref)
	}
	return fmt.Errorf("send the work to %s (%s): %w", r.remote.Name, r.remote.URL, r.remote.Harmless(err))
}

// Fetch fetches what the remote has of the team. It changes no branch of the clone; see
// [Road.Take].
func (r *Road) Fetch(ctx context.Context) error {
	// Another process of this machine may fetch at the same time; git waits for its locks.
	_, err := r.git.ToRemote().Run(ctx, nil, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--refmap=",
		r.remote.Name, "+"+r.base()+"*:"+r.base()+"*", "+"+r.work("*")+":"+r.work("*"),
		"+"+r.aside()+"*:"+r.aside()+"*")
	if err != nil {
		return fmt.Errorf("fetch the work of team %s from %s (%s): %w", r.team.Name, r.remote.Name, r.remote.URL,
			r.remote.Harmless(err))
	}
	return nil
}

// Has reports whether the clone has the commit.
func (r *Road) Has(ctx context.Context, commit string) (bool, error) {
	_, err := r.git.Text(ctx, "cat-file", "-e", commit+"^{commit}")
	if _, refused := errors.AsType[*git.Refusal](err); refused {
		return false, nil
	}
	return err == nil, err
}

// commit returns the commit of a reference, or "" without such a reference.
func (r *Road) commit(ctx context.Context, ref string) (string, error) {
	return r.git.Text(ctx, "for-each-ref", "--format=%(objectname)", ref)
}

// Sent reports whether the remote has work of the member, as it was last fetched.
func (r *Road) Sent(ctx context.Context, member string) (bool, error) {
	work, err := r.commit(ctx, r.work(member))
	return work != "", err
}

// Unsent reports whether the clone has work of the member that the remote lacks, as it was last
// fetched or sent.
func (r *Road) Unsent(ctx context.Context, member string) (bool, error) {
	begun, err := r.commit(ctx, r.begun(member))
	if err != nil || begun == "" {
		return false, err
	}
	has, err := r.commit(ctx, r.branch(member))
	if err != nil || has == "" {
		return false, err
	}
	for _, ref := range []string{r.work(member), r.aside() + member + "-" + has[:12], r.begun(member)} {
		there, err := r.commit(ctx, ref)
		if err != nil {
			return false, err
		}
		if there == "" {
			continue
		}
		if sent, err := r.follows(ctx, there, has); sent || err != nil {
			return false, err
		}
	}
	return true, nil
}

// SendAside sends the clone's work of a member who went on elsewhere without it. Fetch makes it a
// branch beside the member's.
func (r *Road) SendAside(ctx context.Context, member string) error {
	has, err := r.commit(ctx, r.branch(member))
	if err != nil || has == "" {
		return err
	}
	return r.send(ctx, has, r.aside()+member+"-"+has[:12])
}

// Aside makes branches of what was sent aside, as it was last fetched, and returns their names.
func (r *Road) Aside(ctx context.Context) (branches []string, err error) {
	out, err := r.git.Text(ctx, "for-each-ref", "--format=%(objectname) %(refname)", r.aside())
	for line := range strings.Lines(out) {
		commit, ref, _ := strings.Cut(strings.TrimSpace(line), " ")
		branch := team.BranchOf(r.team.Name, strings.TrimPrefix(ref, r.aside()))
		if there, failed := r.commit(ctx, "refs/heads/"+branch); there == "" && failed == nil {
			err = errors.Join(err, r.git.UpdateOwn(ctx, "refs/heads/"+branch, "refs/heads/"+branch, commit))
		}
		branches = append(branches, branch)
	}
	return branches, err
}

// Holds reports whether the member's branch, or HEAD, has the commit.
func (r *Road) Holds(ctx context.Context, member, commit string) (bool, error) {
	if there, err := r.Has(ctx, commit); !there || err != nil {
		return false, err
	}
	if has, err := r.On(ctx, team.BranchOf(r.team.Name, member), commit); has || err != nil {
		return has, err
	}
	return r.follows(ctx, "HEAD", commit)
}

// On reports whether the branch has the commit.
func (r *Road) On(ctx context.Context, branch, commit string) (bool, error) {
	if there, err := r.Has(ctx, commit); !there || err != nil {
		return false, err
	}
	tip, err := r.commit(ctx, "refs/heads/"+branch)
	if err != nil || tip == "" {
		return false, err
	}
	return r.follows(ctx, tip, commit)
}

// follows reports whether the commit has all of the other one.
func (r *Road) follows(ctx context.Context, commit, other string) (bool, error) {
	return r.git.Holds(ctx, "merge-base", "--is-ancestor", other, commit)
}

// News reports whether [Road.Take] must be called before the member's work goes on here. The remote
// may have work that the clone's branch lacks, or an earlier team may have left that branch. What
// the remote has is known from the last fetch.
func (r *Road) News(ctx context.Context, member string) (bool, error) {
	has, err := r.commit(ctx, r.branch(member))
	if err != nil || has == "" {
		return err == nil, err
	}
	begun, err := r.commit(ctx, r.begun(member))
	if err != nil || begun == "" {
		return err == nil, err
	}
	theirs, err := r.commit(ctx, r.work(member))
	if err != nil || theirs == "" {
		return false, err
	}
	follows, err := r.follows(ctx, has, theirs)
	return !follows && err == nil, err
}

// Take moves the clone's branch of the member to where the remote has it, as it was last fetched;
// without work there, to the commit that the team starts from. Other work on the branch, or what an
// earlier team left, is kept under another name, which Take returns. The branch must not be checked
// out.
func (r *Road) Take(ctx context.Context, member string) (aside string, err error) {
	theirs, err := r.commit(ctx, r.work(member))
	if err != nil {
		return "", err
	}
	if theirs == "" {
		theirs = r.team.Base.Commit
	}
	has, err := r.commit(ctx, r.branch(member))
	if err != nil {
		return "", err
	}
	begun, err := r.commit(ctx, r.begun(member))
	if err != nil {
		return "", err
	}
	if has != "" {
		ahead, err := r.follows(ctx, has, theirs)
		if err != nil || ahead && begun != "" {
			return "", err
		}
		if behind, err := r.follows(ctx, theirs, has); err != nil {
			return "", err
		} else if !behind {
			aside = fmt.Sprintf("%s-%.12s", team.BranchOf(r.team.Name, member), has)
			if err := r.git.UpdateOwn(ctx, "refs/heads/"+aside, "refs/heads/"+aside, has); err != nil {
				return "", err
			}
		}
	}
	at, err := r.git.Text(ctx, "for-each-ref", "--format=%(worktreepath)", r.branch(member))
	if at != "" || err != nil {
		if err == nil {
			err = fmt.Errorf("the branch %s is checked out in %s, and cannot be moved to what was sent; check out "+
				"another one there", team.BranchOf(r.team.Name, member), at)
		}
		return "", err
	}
	if err := r.git.UpdateOwn(ctx, r.branch(member), r.branch(member), theirs); err != nil {
		return aside, err
	}
	return aside, r.git.UpdateOwn(ctx, r.begun(member), r.begun(member), theirs)
}

// Leave removes the member's branch from a clone that does not need it any more, if the remote has
// all of it. sent is false for a branch that stays.
func (r *Road) Leave(ctx context.Context, member string) (sent bool, err error) {
	has, err := r.commit(ctx, r.branch(member))
	if err != nil || has == "" {
		return err == nil, err
	}
	unsent, err := r.Unsent(ctx, member)
	if err != nil || unsent {
		return false, err
	}
	begun, err := r.commit(ctx, r.begun(member))
	if err != nil || begun == "" { // it is not this team's
		return false, err
	}
	return true, r.git.UpdateOwn(ctx, r.branch(member), "-d", r.branch(member), has)
}

// Forget removes the team's references from the clone. Branches stay.
func (r *Road) Forget(ctx context.Context) error {
	out, err := r.git.Text(ctx, "for-each-ref", "--format=%(refname)", r.ours())
	for _, ref := range strings.Fields(out) {
		if err == nil {
			err = r.git.UpdateOwn(ctx, ref, "-d", ref)
		}
	}
	return err
}

// Drop removes what the remote has of the team, which the clone must have on its branches before.
func (r *Road) Drop(ctx context.Context) error {
	out, err := r.git.ToRemote().Text(ctx, "ls-remote", "--refs", r.remote.Name, r.ours()+"*")
	for line := range strings.Lines(out) {
		if _, ref, is := strings.Cut(strings.TrimSpace(line), "\t"); is && err == nil {
			_, err = r.git.ToRemote().Run(ctx, nil, "push", "--porcelain", "--no-signed", r.remote.Name, ":"+ref)
		}
	}
	if err != nil {
		return fmt.Errorf("remove the work of team %s from %s (%s): %w", r.team.Name, r.remote.Name, r.remote.URL,
			r.remote.Harmless(err))
	}
	return r.Forget(ctx)
}
