package layout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cadre/internal/git/project"
	"cadre/internal/journal"
	"cadre/internal/journal/filejournal"
	"cadre/internal/journal/recorded"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// idLetters is the length of the last part of an id, and idAlphabet are its letters.
const (
	idLetters  = 26
	idAlphabet = "abcdefghijklmnopqrstuvwxyz234567"
)

// nameOfID returns the name of the team with that id. ok is false for a text that is not such an
// id.
func nameOfID(id string) (name string, ok bool) {
	cut := len(id) - idLetters - 1
	if cut < 1 || id[cut] != '-' || strings.Trim(id[cut+1:], idAlphabet) != "" || !team.ValidName(id[:cut]) {
		return "", false
	}
	return id[:cut], true
}

// NameOf returns the name of the team in a folder of that name.
func NameOf(folder string) string {
	if name, ok := nameOfID(folder); ok {
		return name
	}
	return folder
}

// Known is what is known of a team without its processes.
type Known struct {
	Folder string
	Team   team.Team
	Err    error // why the team cannot be read; then the Team has its name alone, and perhaps its id

	project string // what the team's project is called in its place
}

// lost reports whether the team's project is not in the team's directory any more: it may have been
// moved, and another one may be in its place. The worktrees of members say which repository they
// belong to.
func (k Known) lost() bool {
	if k.Err != nil {
		return false
	}
	info, err := os.Stat(k.Team.Dir)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	of, repository := project.Of(k.Team.Dir)
	if !info.IsDir() || k.Team.Base.Top != "" && !repository {
		return true
	}
	worktrees, err := filepath.Glob(filepath.Join(k.Folder, "worktrees", "*", ".git"))
	return err == nil && slices.ContainsFunc(worktrees, func(git string) bool {
		own, is := project.Of(filepath.Dir(git))
		return is && own != of
	})
}

// know reads the team in a folder.
func (h Home) know(ctx context.Context, folder string) Known {
	k := Known{Folder: folder, Team: team.Team{Name: NameOf(filepath.Base(folder))}}
	if _, is := nameOfID(filepath.Base(folder)); is {
		k.Team.ID = filepath.Base(folder)
	}
	j, err := h.openFolder(folder, nil)
	if err != nil {
		k.Err = err
		return k
	}
	defer j.Close()
	if placed, is := j.(placedJournal); is {
		k.project = placed.project
	}
	k.Team.ID, _, _ = strings.Cut(j.ID(), restoredMark)
	s, _, err := recorded.State(ctx, j, nil)
	if err != nil {
		k.Err = err
		return k
	}
	k.Team = s.Team()
	k.Team.Dir = h.standing(ctx, k.Team, team.MostDepth)
	return k
}

// standing returns the directory of the team. A nested team that is over may have worked in the
// worktree of a member, which was removed since; the directory of its parent stands for its project
// then. It looks for that so many levels up.
func (h Home) standing(ctx context.Context, of team.Team, levels int) string {
	if of.Parent.Team == "" || levels == 0 {
		return of.Dir
	}
	if _, err := os.Lstat(of.Dir); !errors.Is(err, fs.ErrNotExist) {
		return of.Dir
	}
	folder := cmp.Or(h.Has(of.Parent.Team), h.InArchive(of.Parent.Team))
	if folder == "" {
		return of.Dir
	}
	j, err := h.openFolder(folder, nil)
	if err != nil {
		return of.Dir
	}
	defer j.Close()
	s, _, err := recorded.State(ctx, j, nil)
	if err != nil {
		return of.Dir
	}
	return h.standing(ctx, s.Team(), levels-1)
}

// same reports whether the team belongs to the caller's project.
func (h Home) same(k Known) bool {
	if h.Place != nil {
		return k.project == h.Place.Project(h.Dir)
	}
	return project.Same(k.Team.Dir, h.Dir)
}

// AmbiguousError says that a name stands for teams of several projects, none of them the caller's.
type AmbiguousError struct {
	Name  string
	Teams []Known
}

func (e *AmbiguousError) Error() string {
	var all []string
	for _, k := range e.Teams {
		switch {
		case k.Team.ID == "" && k.Err != nil:
			all = append(all, fmt.Sprintf("one in %s that cannot be read", k.Folder))
		case k.Err != nil:
			all = append(all, k.Team.ID+" (cannot be read)")
		default:
			all = append(all, fmt.Sprintf("%s in %s", k.Team.ID, k.Team.Dir))
		}
	}
	return fmt.Sprintf("%d teams are named %s: %s. Give the id instead of the name, or work in the team's project",
		len(e.Teams), e.Name, strings.Join(all, ", "))
}

func (e *AmbiguousError) Unwrap() error { return &team.Error{Code: team.Invalid, Text: e.Error()} }

// ElsewhereError says that the caller's project has no team of that name, and that other projects
// have one. It is code not_found, so that a caller may create the team.
type ElsewhereError struct {
	Name  string
	Dir   string // the caller's
	Teams []Known
}

func (e *ElsewhereError) Error() string {
	var all []string
	for _, k := range e.Teams {
		all = append(all, fmt.Sprintf("%s in %s", k.Team.ID, k.Team.Dir))
	}
	others := "Another project has one"
	if len(all) > 1 {
		others = fmt.Sprintf("%d other projects have one", len(all))
	}
	return fmt.Sprintf("the project of %s has no team %s. %s: %s", e.Dir, e.Name, others, strings.Join(all, ", "))
}

func (e *ElsewhereError) Unwrap() error { return &team.Error{Code: team.NotFound, Text: e.Error()} }

// Folder returns the folder of a team, by its name or its id; see Names. It also finds an archived
// team by its id. The error is a [*team.Error] with code not_found where there is none, and an
// [*AmbiguousError] where the name fits several teams.
func (h Home) Folder(ref string) (string, error) {
	known, err := h.find(ref)
	if err != nil {
		return "", err
	}
	if len(known) > 1 {
		known = h.inProject(ref, known)
	}
	if len(known) > 1 {
		e := &AmbiguousError{Name: ref}
		for _, folder := range known {
			e.Teams = append(e.Teams, h.know(context.Background(), folder))
		}
		return "", e
	}
	return known[0], nil
}

// Own is Folder, but a name stands for a team of the caller's project alone. If only other projects
// have a team of that name, it returns an [*ElsewhereError]. An unfinished team counts if its
// directory does not exist, because that may be the project under its former path. A team that
// cannot be read counts, too.
func (h Home) Own(ref string) (string, error) {
	return h.own(ref, func(k Known) bool { return k.Err != nil || k.lost() && !k.Team.Ended() })
}

// Sure is Own for the removal of a team. A team counts in any state if its directory does not
// exist. That may be the project under its former path, and no other team can be meant. An observed
// team counts, because it belongs to no project and its name is unique in the home.
func (h Home) Sure(ref string) (string, error) {
	return h.own(ref, func(k Known) bool { return k.Err != nil || k.Team.Observed != "" || k.lost() })
}

func (h Home) own(ref string, maybe func(Known) bool) (string, error) {
	folders, err := h.find(ref)
	if err != nil {
		return "", err
	}
	if h.Dir == "" || h.Scope != nil || h.Archived(folders[0]) {
		return h.Folder(ref)
	}
	var all, may []Known
	for _, folder := range folders {
		k := h.know(context.Background(), folder)
		switch {
		case k.Team.ID == ref, k.Err == nil && h.same(k):
			return h.Folder(ref)
		case maybe(k):
			may = append(may, k)
		}
		all = append(all, k)
	}
	switch len(may) {
	case 0:
		return "", &ElsewhereError{Name: ref, Dir: h.Dir, Teams: all}
	case 1:
		return may[0].Folder, nil
	}
	return "", &AmbiguousError{Name: ref, Teams: may}
}

// find returns the folders that a name or an id may stand for, at least one.
func (h Home) find(ref string) ([]string, error) {
	if _, is := nameOfID(ref); !is {
		if err := team.CheckName("team", ref); err != nil {
			return nil, err
		}
	}
	found, err := h.named(ref)
	if err != nil {
		return nil, err
	}
	if reached := h.reachable(found); len(reached) > 0 {
		return reached, nil
	}
	if name, is := nameOfID(ref); is && len(found) == 0 {
		if found, err = h.named(name); err != nil {
			return nil, err
		}
		for _, folder := range h.reachable(found) {
			if filepath.Base(folder) == ref || h.know(context.Background(), folder).Team.ID == ref {
				return []string{folder}, nil
			}
		}
	}
	if err := h.reach(ref); err != nil {
		return nil, err
	}
	archived, err := h.hasArchived(ref)
	if err != nil {
		return nil, err
	}
	if archived != "" {
		return []string{archived}, nil
	}
	return nil, h.notFound(ref)
}

// Around returns the name or id of the team in whose folder the directory is, such as a member's
// worktree; "" for none.
func (h Home) Around(dir string) string {
	teams, err := filepath.EvalSymlinks(h.teams())
	if err != nil {
		return ""
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return ""
	}
	in, err := filepath.Rel(teams, dir)
	if err != nil || !filepath.IsLocal(in) {
		return ""
	}
	folder, _, _ := strings.Cut(in, string(filepath.Separator))
	if !team.ValidName(NameOf(folder)) {
		return ""
	}
	return folder
}

func (h Home) notFound(ref string) error {
	there, err := h.Names()
	if err != nil {
		return err
	}
	if len(there) == 0 {
		return team.Refuse(team.NotFound, "team %s does not exist; there is no team yet", ref).
			With(team.Hint{Action: team.ActCreate})
	}
	text := fmt.Sprintf("team %s does not exist; the teams are: ", ref)
	if near := team.Nearest(ref, there); near != "" {
		text = fmt.Sprintf("team %s does not exist, did you mean %s? The teams are: ", ref, near)
	}
	const most = 12
	text += strings.Join(there[:min(most, len(there))], ", ")
	if more := len(there) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return team.Refuse(team.NotFound, "%s", text).With(team.Hint{Action: team.ActShowTeams})
}

// hasArchived returns the folder of the archived team with that id; "" for none.
func (h Home) hasArchived(id string) (string, error) {
	folder := filepath.Join(h.archive(), id)
	if h.Place != nil {
		return h.placedAs(folder, true)
	}
	is, err := isFolder(folder)
	if !is {
		folder = ""
	}
	return folder, err
}

// named returns the folders of the teams of that name.
func (h Home) named(name string) ([]string, error) {
	var found []string
	if h.Place != nil {
		return h.placedNamed(name)
	}
	if is, err := isFolder(filepath.Join(h.teams(), name)); err != nil {
		return nil, err
	} else if is && NameOf(name) == name {
		found = append(found, filepath.Join(h.teams(), name))
	}
	entries, err := os.ReadDir(h.teams())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if of, is := nameOfID(e.Name()); is && of == name && e.IsDir() {
			found = append(found, filepath.Join(h.teams(), e.Name()))
		}
	}
	return found, nil
}

// isFolder reports whether a team's folder exists. It refuses anything else of that name.
func isFolder(dir string) (bool, error) {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case info.Mode().Type() == fs.ModeSymlink:
		return false, &team.Error{Code: team.Invalid, Text: fmt.Sprintf("%s is a link, but a team must be in a "+
			"folder of its own home; to use the team where it is, set CADRE_HOME", dir)}
	case !info.IsDir():
		return false, notAFolder(dir, info.Mode())
	}
	return true, nil
}

// notAFolder refuses a file of another kind in the place of a team's folder.
func notAFolder(path string, mode fs.FileMode) error {
	return &team.Error{Code: team.Invalid, Text: fmt.Sprintf("%s is %s, and a team is a folder; remove it or move it "+
		"elsewhere", path, regularfile.Kind(mode))}
}

// reachable returns the folders that the caller may reach.
func (h Home) reachable(folders []string) []string {
	return slices.DeleteFunc(slices.Clone(folders), func(folder string) bool {
		return h.reach(filepath.Base(folder)) != nil
	})
}

// inProject returns the folders of the teams in the caller's project, or all if there are none. Of
// several, it prefers the one that has not ended.
func (h Home) inProject(name string, folders []string) []string {
	if h.Dir == "" {
		return folders
	}
	var here, open []string
	for _, folder := range folders {
		k := h.know(context.Background(), folder)
		if k.Err != nil || !h.same(k) {
			continue
		}
		if here = append(here, folder); !k.Team.Ended() {
			open = append(open, folder)
		}
	}
	switch {
	case len(open) == 1:
		return open
	case len(here) > 0:
		return here
	}
	return folders
}

// idIn returns the id of the team in the folder; "" if it cannot be read.
func (h Home) idIn(folder string) string {
	if id, placed := h.Placed(folder); placed {
		return id
	}
	j, err := filejournal.Open(folder, filejournal.Options{})
	if err != nil {
		return ""
	}
	defer j.Close()
	id, _, _ := strings.Cut(j.ID(), restoredMark)
	return id
}

// Open opens the journal of the team, by its name or its id. It reports repairs to report.
func (h Home) Open(ref string, report func(string)) (Journal, string, error) {
	dir, err := h.Folder(ref)
	if err != nil {
		return nil, "", err
	}
	j, err := h.openSeen(dir, report)
	if team.CodeOf(err) == team.NotFound {
		dir = ""
	}
	return j, dir, err
}

// OpenFolder opens the journal of the team in a folder that [Home.Folder] returned.
func (h Home) OpenFolder(dir string, report func(string)) (Journal, error) {
	if err := h.reach(filepath.Base(dir)); err != nil {
		return nil, err
	}
	return h.openSeen(dir, report)
}

func (h Home) openFolder(dir string, report func(string)) (Journal, error) {
	if id, placed := h.Placed(dir); placed {
		return h.openPlaced(dir, id)
	}
	j, err := filejournal.Open(dir, filejournal.Options{Report: report})
	if errors.Is(err, journal.ErrNotFound) {
		return nil, &team.Error{Code: team.NotFound, Text: fmt.Sprintf("%s holds no journal; if it is of no use, "+
			"remove the folder", dir)}
	}
	if err != nil {
		return nil, err
	}
	if err := owns(j, dir); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// Vacant returns the folder that a new team would have now, or why it cannot be made.
func (h Home) Vacant(t team.Team) (string, error) { return h.vacant(t) }

// vacant returns the folder for a new team. The caller holds the lock of the names. It refuses a
// name that a team of the same project has, or that an observed team would share.
func (h Home) vacant(t team.Team) (string, error) {
	if h.Place != nil {
		return h.vacantPlaced(t)
	}
	folders, err := h.named(t.Name)
	if err != nil {
		return "", err
	}
	free := true // the folder of that name
	for _, folder := range folders {
		free = free && filepath.Base(folder) != t.Name
		k := h.know(context.Background(), folder)
		if left, err := os.ReadDir(folder); err == nil && len(left) == 0 {
			free = true
			continue
		}
		switch {
		case k.Team.ID == t.ID && t.Observed == "":
			return "", team.Refuse(team.Taken, "team %s is in this home already, and works in %s", t.ID, k.Team.Dir)
		case k.Err != nil, t.Observed != "", project.Same(k.Team.Dir, t.Dir):
			return "", h.taken(k, "")
		case k.lost() && !k.Team.Ended():
			return "", h.taken(k, ". Its directory, "+k.Team.Dir+", does not exist")
		}
	}
	if free {
		return filepath.Join(h.teams(), t.Name), nil
	}
	if of, is := nameOfID(t.ID); !is || of != t.Name {
		return "", h.taken(Known{Team: team.Team{Name: t.Name}}, "")
	}
	return filepath.Join(h.teams(), t.ID), nil
}

// taken refuses a name that is in use.
func (h Home) taken(by Known, why string) error {
	name := by.Team.Name
	return team.Refuse(team.Taken, "a team named %s exists already%s; a free name: %s", name, why, h.free(name)).
		With(by.Team.Onward())
}

// Beside reports whether the folder is that of a team which shares its name with another one. Such
// a folder has the team's id for its name, as the folder of an archived team does.
func Beside(folder string) bool {
	_, is := nameOfID(filepath.Base(folder))
	return is
}

// Archived reports whether the folder is one of the archive.
func (h Home) Archived(folder string) bool {
	dir := filepath.Dir(folder)
	return dir == filepath.Join(h.Root, archiveFolder) || dir == filepath.Join(h.Root, placedArchive)
}

// InArchive returns the folder of the archived team with that id; "" for none.
func (h Home) InArchive(id string) string {
	if _, is := nameOfID(id); !is {
		return ""
	}
	dir, err := h.hasArchived(id)
	if err != nil || dir == "" || h.idIn(dir) != id {
		return ""
	}
	return dir
}

// Nowhere returns the folder of a team that does not exist yet. Nothing is ever in it.
func (h Home) Nowhere() string { return filepath.Join(h.teams(), newMark+"none") }

// Has returns the folder of the unarchived team with that id; "" for none.
func (h Home) Has(id string) string {
	name, is := nameOfID(id)
	if !is {
		return ""
	}
	folders, err := h.named(name)
	if err != nil {
		return ""
	}
	for _, folder := range folders {
		if filepath.Base(folder) == id || h.idIn(folder) == id {
			return folder
		}
	}
	return ""
}

// archiveFolder is the name of the folder of archived teams.
const archiveFolder = "archive"
