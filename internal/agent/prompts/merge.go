package prompts

import (
	"fmt"
	"strings"

	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// Merge asks the lead to merge a member's branch, and says how.
type Merge struct {
	Team           string  // its name
	Repo           string  // directory that the team works in
	Dir            string  // of the worktree for the merge: the member's own
	There          bool    // that worktree exists
	Member, Branch string  // the owner of the work, and its branch
	With           []Other // what the branch conflicts with
	Trouble        string  // why it was not merged, if there is no conflict
}

// Other is one side that a branch conflicts with.
type Other struct {
	Name  string // a description: "the branch X"
	Ref   string // its name for git
	Files []string
}

func (o Other) how() string {
	if len(o.Files) > 0 {
		return "conflicts with " + o.Name
	}
	return "does not have what is on " + o.Name
}

// fileList names files on one line. Agents have chosen the names.
func fileList(before string, files []string) string {
	if len(files) == 0 {
		return ""
	}
	return before + list(files)
}

// resolve begins the line of the recipe at which the conflicts are resolved.
const resolve = "# resolve the conflicts in these files: "

// String returns the description of the task. The indented lines are shell commands, in the order
// in which to run them. None of them changes what is checked out in Repo.
func (m Merge) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "The work of %s is on the branch %s", m.Member, m.Branch)
	if len(m.With) == 0 {
		fmt.Fprintf(&b, ". Why it was not merged:\n%s\n", quote(m.Trouble))
		fmt.Fprintf(&b, "\nLook at it: git -C %s log -p %s\n", sanitize.Quote(m.Repo),
			sanitize.Quote("HEAD.."+m.Branch))
		fmt.Fprintf(&b, "To have it merged when the team is consolidated, complete this task: %s\nTo leave it out, "+
			"delete this task: %s", m.command("done"), m.command("rm"))
		return b.String()
	}
	for i, o := range m.With {
		fmt.Fprintf(&b, "%s%s%s", []string{", which ", " and "}[min(i, 1)], o.how(), fileList(" in ", o.Files))
	}
	fmt.Fprintf(&b, ".\n\nMerge them in a worktree of that branch, and leave what is checked out in %s as it is:\n\n",
		m.Repo)
	if !m.There {
		fmt.Fprintf(&b, "    cd %s\n    git worktree add %s %s\n", sanitize.Quote(m.Repo), sanitize.Quote(m.Dir),
			sanitize.Quote(m.Branch))
	}
	fmt.Fprintf(&b, "    cd %s\n", sanitize.Quote(m.Dir))
	for _, o := range m.With {
		fmt.Fprintf(&b, "    git merge --no-edit %s\n", sanitize.Quote(o.Ref))
		if len(o.Files) > 0 {
			fmt.Fprintf(&b, "    %s\n    git add --all\n    git commit --no-edit\n", fileList(resolve, o.Files))
		}
	}
	fmt.Fprintf(&b, "    %s\n", m.command("done"))
	fmt.Fprintf(&b, "\nThe last command completes this task, and what waits for it continues: the branch is merged "+
		"when the team is consolidated. To leave the branch out, delete this task: %s", m.command("rm"))
	return b.String()
}

// command returns the command that applies verb to the task with this description.
func (m Merge) command(verb string) string {
	return fmt.Sprintf("cadre task %s %s %s", verb, sanitize.Quote(m.Team), team.ThisTask)
}
