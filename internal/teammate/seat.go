package teammate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"cadre/internal/claude/projection"
	"cadre/internal/claude/teamfiles"
	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// Seat is what cadre keeps of a member while it is on the team, so that one that is killed is
// missed, and whoever is started under its name goes on for it.
//
//	<root>/<team>/<name>/seat.json    who sits there
//	                     processes/   of its agent (proc)
//	                     scratch/     of its agent's session
type Seat struct {
	Procs *proc.Register // of the member's agent

	team *teamfiles.Team
	name string
	dir  string
	sits sitter
	cut  bool
}

// sitter is what is known of who sits there.
type sitter struct {
	Lead     string  `json:"lead"`               // session of the team's lead
	Agent    string  `json:"agent"`              // which agent it is
	Session  string  `json:"session,omitempty"`  // its own id of its session
	Working  bool    `json:"working,omitempty"`  // a turn runs
	JoinedAt int64   `json:"joinedAt,omitempty"` // of its entry on the roster, where it joined by hand
	Key      leadKey `json:"key,omitzero"`       // of the signatures of the lead that started it
}

// leadKey is the key with which a lead signs to one teammate that it starts. It holds for one
// process of the lead's.
type leadKey struct {
	Lead projection.LeadProcess `json:"lead"`
	Key  string                 `json:"key"`
}

// standUp is how long whoever looks after somebody who was killed may sit there.
const standUp = 2 * time.Second

// Take sits a member down. root is the folder of all seats. What is left of one that was killed
// there is ended, and where it was the same agent in the same team the new one is to go on with its
// session. Somebody who sits there already is a [team.Error] with code taken.
func Take(ctx context.Context, root string, t *teamfiles.Team, name, agent string) (*Seat, error) {
	if err := team.CheckName("member", name); err != nil {
		return nil, err
	}
	c, err := t.Config(ctx)
	if err != nil {
		return nil, err
	}
	s := &Seat{team: t, name: name, dir: filepath.Join(root, t.Name, name)}
	if err := s.sit(ctx); err != nil {
		return nil, err
	}
	s.sits = s.last()
	if s.sits.Lead != c.LeadSessionID {
		s.sits = sitter{Lead: c.LeadSessionID}
	}
	if s.sits.Agent != agent {
		s.sits.Agent, s.sits.Session, s.sits.Working = agent, "", false
	}
	s.cut = s.sits.Working
	if err := errors.Join(os.RemoveAll(s.Scratch()), s.save()); err != nil {
		return nil, errors.Join(err, s.Procs.Close(ctx))
	}
	return s, nil
}

// sit opens the register, which only one process has.
func (s *Seat) sit(ctx context.Context) error {
	for until := time.Now().Add(standUp); ; {
		_, err := proc.EndStrays(ctx, s.processes()) // which waits for a moment itself
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			s.Procs, err = proc.OpenListed(s.processes(), proc.Listing{Folder: s.list()})
		}
		switch {
		case !errors.Is(err, filelock.ErrHeld):
			return err
		case time.Now().After(until):
			return &team.Error{Code: team.Taken, Text: fmt.Sprintf(
				"there is a %s on team %s already; take another name", s.name, filepath.Base(filepath.Dir(s.dir)))}
		}
	}
}

// list is where hosts are listed, among the teams of the home whose seats these are. The team is
// none of those.
func (s *Seat) list() string {
	seats := filepath.Dir(filepath.Dir(s.dir))
	return filepath.Join(filepath.Dir(seats), "teams", proc.ListFolder)
}

func (s *Seat) processes() string { return filepath.Join(s.dir, "processes") }

// Scratch is the path for the files of the agent's session.
func (s *Seat) Scratch() string { return filepath.Join(s.dir, "scratch") }

func (s *Seat) file() string { return filepath.Join(s.dir, "seat.json") }

// maxNote is the most that is read of a file in a seat, in bytes.
const maxNote = 64 << 10

// last is who sat there before; the zero sitter for nobody.
func (s *Seat) last() (who sitter) {
	data, err := regularfile.Read(s.file(), maxNote)
	// what is damaged is of no use to whoever comes next, and nothing hangs on it
	if err != nil || json.Unmarshal(data, &who) != nil {
		return sitter{}
	}
	return who
}

func (s *Seat) save() error { return writeWhole(s.file(), s.sits) }

func writeWhole(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return atomicfile.Replace(path, data, atomicfile.Passing{})
}

// Join puts the member on the roster, by hand. The entry of one that was killed on this seat is its
// own.
func (s *Seat) Join(ctx context.Context, m teamfiles.Member) error {
	c, err := s.team.Config(ctx)
	if err != nil {
		return err
	}
	if there := c.Member(m.Name); there != nil && there.JoinedAt == s.sits.JoinedAt && s.sits.JoinedAt != 0 {
		if err := s.team.Leave(ctx, m.Name); err != nil {
			return err
		}
	}
	s.sits.JoinedAt, s.sits.Key = m.JoinedAt, leadKey{} // whoever sat here before may have been started by the lead
	if err := s.save(); err != nil {
		return err
	}
	return s.team.Join(ctx, m)
}

// keep notes what whoever goes on for the member has to know.
func (s *Seat) keep(session string, working bool) error {
	if s.sits.Session == session && s.sits.Working == working {
		return nil
	}
	s.sits.Session, s.sits.Working = session, working
	return s.save()
}

// done notes that all is said: whoever is killed from now on, such as by the lead that closes its
// pane, is not missed.
func (s *Seat) done() { os.Remove(s.file()) }

// Leave frees the seat.
func (s *Seat) Leave(ctx context.Context) error {
	s.done()
	err := s.Procs.Close(ctx)
	return errors.Join(err, s.remove())
}

// remove takes the folder away, and that of the team with the last of its seats.
func (s *Seat) remove() error {
	err := os.RemoveAll(s.dir)
	all := filepath.Dir(s.dir)
	if seats, _ := fs.Glob(os.DirFS(all), "*/*"); len(seats) == 0 {
		err = errors.Join(err, os.RemoveAll(all))
	}
	return err
}

// Sweep removes the seats of teams that are over, of which nobody came back to say so. claude is
// Claude Code's folder.
func Sweep(ctx context.Context, claude, root string) error {
	seats, err := fs.Glob(os.DirFS(root), "*/*/processes")
	for _, seat := range seats {
		processes := filepath.Join(root, filepath.FromSlash(seat))
		s := &Seat{dir: filepath.Dir(processes)}
		if _, there := teamfiles.Open(claude, filepath.Base(filepath.Dir(s.dir))); team.CodeOf(there) != team.NotFound {
			continue
		}
		_, held := proc.EndStrays(ctx, processes)
		if held == nil {
			held = proc.Remove(processes)
		}
		if held == nil {
			err = errors.Join(err, s.remove())
		}
	}
	return err
}

// LeadKey is the key with which the lead signs what it sends to this member: the given one, which
// is kept for whoever goes on for the member, else the one that was kept; nil where there is none.
// A lead has a key for each teammate that it starts, and signs nothing to others: whoever joins by
// hand has none.
func (s *Seat) LeadKey(ctx context.Context, given string) (*teamfiles.LeadKey, error) {
	c, err := s.team.Config(ctx)
	if err != nil {
		return nil, err
	}
	var lead projection.LeadProcess
	if c.LeadProcess != nil {
		lead = *c.LeadProcess
	}
	if given == "" {
		if s.sits.Key.Key == "" || s.sits.Key.Lead != lead {
			return nil, nil
		}
		return teamfiles.ParseLeadKey(s.sits.Key.Key)
	}
	key, err := teamfiles.ParseLeadKey(given)
	if err != nil {
		return nil, err
	}
	s.sits.Key = leadKey{lead, given}
	return key, s.save()
}

// Bury does for a member that was killed what it cannot do any more: it ends what is left of its
// agent and tells the lead, and one that joined by hand it takes off the roster. Its seat stays for
// whoever is started under its name, and so does its mail. claude is Claude Code's folder, and
// again the command for that.
func Bury(ctx context.Context, claude, root, teamName, name, again string) error {
	t, gone := teamfiles.Open(claude, teamName)
	if err := errors.Join(team.CheckName("team", teamName), team.CheckName("member", name)); err != nil {
		return err
	}
	s := &Seat{team: t, name: name, dir: filepath.Join(root, teamName, name)}
	if err := s.sit(ctx); err != nil {
		if team.CodeOf(err) == team.Taken { // somebody goes on for it already
			return nil
		}
		return err
	}
	defer s.Procs.Close(ctx)
	s.sits = s.last()
	if s.sits == (sitter{}) || team.CodeOf(gone) == team.NotFound { // all was said, or there is nobody to be told
		return s.remove()
	}
	if gone != nil {
		return gone
	}
	err := os.RemoveAll(s.Scratch())
	c, damage := t.Config(ctx)
	if damage != nil {
		return errors.Join(err, damage)
	}
	entry, byHand := c.Member(name), s.sits.JoinedAt != 0
	switch {
	case entry == nil && !byHand: // the lead let it go
		return err
	case entry == nil: // a lead that rewrites the roster may lose the entry; the lead must hear of it all the same
		entry = &projection.Member{}
	case byHand && entry.JoinedAt != s.sits.JoinedAt: // somebody else has the name by now
		return err
	}
	words := fmt.Sprintf("%s was killed; nobody does its work now. What is sent to it waits for whoever goes on for "+
		"it, with: %s", name, again)
	if byHand {
		words = fmt.Sprintf("%s was killed and is off the team; nobody does its work now. It comes back with: %s", name,
			again)
	}
	err = errors.Join(err, failed(ctx, t, c, name, entry.Color, words))
	if byHand {
		return errors.Join(err, t.Leave(ctx, name))
	}
	return errors.Join(err, t.SetActive(ctx, name, false))
}

// failed tells the lead, in the name of a member that does not run, why nobody does its work.
func failed(ctx context.Context, t *teamfiles.Team, c projection.Config, name, color, words string) error {
	idle := &teamfiles.Idle{From: name, Timestamp: teamfiles.Stamp(time.Now()), Reason: "failed", Failure: words,
		Result: words}
	return t.Send(ctx, stateOf(c, nil, self{name: name}).Team().Lead,
		teamfiles.Entry{From: name, Text: teamfiles.Text(idle), Color: color})
}

// Excuse tells the lead why a teammate that it started cannot be: its pane, which says so too, is
// closed by then.
func Excuse(ctx context.Context, t *teamfiles.Team, name, color string, why error) error {
	if err := team.CheckName("member", name); err != nil {
		return err
	}
	c, err := t.Config(ctx)
	if err != nil {
		return err
	}
	return failed(ctx, t, c, name, color, fmt.Sprintf("%s could not be started, and nobody does its work: %v", name,
		why))
}
