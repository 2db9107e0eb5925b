package guest

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

// Slot is the place of a member in cadre's folder while the member is on the team. If the member is
// killed, the lead is notified from here, and a successor under the same name continues its
// session.
//
//	<root>/<team>/<name>/seat.json    the occupant
//	                     processes/   of the occupant's agent (package proc)
//	                     scratch/     of the session
type Slot struct {
	Procs *proc.Register // of the member's agent

	team     *teamfiles.Team
	name     string
	dir      string
	occupant occupant
	cutOff   bool
}

// occupant records who has the slot.
type occupant struct {
	Lead     string  `json:"lead"`               // session of the team's lead
	Agent    string  `json:"agent"`              // name of the agent
	Session  string  `json:"session,omitempty"`  // the agent's own id of its session
	Working  bool    `json:"working,omitempty"`  // a turn is running
	JoinedAt int64   `json:"joinedAt,omitempty"` // of its entry on the roster, if it joined by hand
	Key      leadKey `json:"key,omitzero"`       // key of the lead that started it
}

// leadKey is the key with which a lead signs for one teammate that it starts. It is valid for one
// process of the lead.
type leadKey struct {
	Lead projection.LeadProcess `json:"lead"`
	Key  string                 `json:"key"`
}

// handoverTime is how long the helper that cleans up after a kill may occupy the slot.
const handoverTime = 2 * time.Second

// TakeSlot occupies a slot for a member. root is the folder of all slots. Processes that a killed
// occupant left are ended. If that was the same agent in the same team, the new member resumes its
// session. If the slot is occupied, the error is a [team.Error] with code taken.
func TakeSlot(ctx context.Context, root string, t *teamfiles.Team, name, agent string) (*Slot, error) {
	if err := team.CheckName("member", name); err != nil {
		return nil, err
	}
	c, err := t.Config(ctx)
	if err != nil {
		return nil, err
	}
	s := &Slot{team: t, name: name, dir: filepath.Join(root, t.Name, name)}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	s.occupant = s.previous()
	if s.occupant.Lead != c.LeadSessionID {
		s.occupant = occupant{Lead: c.LeadSessionID}
	}
	if s.occupant.Agent != agent {
		s.occupant.Agent, s.occupant.Session, s.occupant.Working = agent, "", false
	}
	s.cutOff = s.occupant.Working
	if err := errors.Join(os.RemoveAll(s.Scratch()), s.save()); err != nil {
		return nil, errors.Join(err, s.Procs.Close(ctx))
	}
	return s, nil
}

// open opens the process register, which only one process can hold.
func (s *Slot) open(ctx context.Context) error {
	for until := time.Now().Add(handoverTime); ; {
		_, err := proc.EndStrays(ctx, s.processes()) // this pauses between tries
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			s.Procs, err = proc.OpenListed(s.processes(), proc.Listing{Folder: s.list()})
		}
		switch {
		case !errors.Is(err, filelock.ErrHeld):
			return err
		case time.Now().After(until):
			return &team.Error{Code: team.Taken, Text: fmt.Sprintf(
				"team %s already has a member %s; choose another name", filepath.Base(filepath.Dir(s.dir)), s.name)}
		}
	}
}

// list returns the folder in which the home of these slots lists its hosts. The team of this slot
// is not one of that home's teams.
func (s *Slot) list() string {
	slots := filepath.Dir(filepath.Dir(s.dir))
	return filepath.Join(filepath.Dir(slots), "teams", proc.ListFolder)
}

func (s *Slot) processes() string { return filepath.Join(s.dir, "processes") }

// Scratch returns the path for the files of the agent's session.
func (s *Slot) Scratch() string { return filepath.Join(s.dir, "scratch") }

func (s *Slot) file() string { return filepath.Join(s.dir, "seat.json") }

// maxFile bounds how much of a file in a slot is read, in bytes.
const maxFile = 64 << 10

// previous returns the previous occupant; the zero occupant if there was none.
func (s *Slot) previous() (who occupant) {
	data, err := regularfile.Read(s.file(), maxFile)
	// a damaged file is of no use to a successor, and nothing depends on it
	if err != nil || json.Unmarshal(data, &who) != nil {
		return occupant{}
	}
	return who
}

func (s *Slot) save() error { return writeWhole(s.file(), s.occupant) }

func writeWhole(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return atomicfile.Replace(path, data, atomicfile.Passing{})
}

// Join adds a member that joins by hand to the roster. It replaces the entry of an occupant of this
// slot that was killed.
func (s *Slot) Join(ctx context.Context, m teamfiles.Member) error {
	c, err := s.team.Config(ctx)
	if err != nil {
		return err
	}
	if there := c.Member(m.Name); there != nil && there.JoinedAt == s.occupant.JoinedAt && s.occupant.JoinedAt != 0 {
		if err := s.team.Leave(ctx, m.Name); err != nil {
			return err
		}
	}
	// the previous occupant may have been started by the lead
	s.occupant.JoinedAt, s.occupant.Key = m.JoinedAt, leadKey{}
	if err := s.save(); err != nil {
		return err
	}
	return s.team.Join(ctx, m)
}

// keep saves what a successor needs.
func (s *Slot) keep(session string, working bool) error {
	if s.occupant.Session == session && s.occupant.Working == working {
		return nil
	}
	s.occupant.Session, s.occupant.Working = session, working
	return s.save()
}

// done records that the lead knows of the member's end. A kill after this, for example when the
// lead closes the pane, is not reported.
func (s *Slot) done() { os.Remove(s.file()) }

// Leave frees the slot.
func (s *Slot) Leave(ctx context.Context) error {
	s.done()
	err := s.Procs.Close(ctx)
	return errors.Join(err, s.remove())
}

// remove removes the slot's folder, and the team's folder if it has no other slot.
func (s *Slot) remove() error {
	err := os.RemoveAll(s.dir)
	all := filepath.Dir(s.dir)
	if slots, _ := fs.Glob(os.DirFS(all), "*/*"); len(slots) == 0 {
		err = errors.Join(err, os.RemoveAll(all))
	}
	return err
}

// Sweep removes the slots of ended teams that were not cleaned up. claude is Claude Code's folder.
func Sweep(ctx context.Context, claude, root string) error {
	slots, err := fs.Glob(os.DirFS(root), "*/*/processes")
	for _, slot := range slots {
		processes := filepath.Join(root, filepath.FromSlash(slot))
		s := &Slot{dir: filepath.Dir(processes)}
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

// LeadKey returns the key with which the lead signs what it sends to this member. A given key is
// used and kept for a successor; otherwise the kept one is used. The result is nil if there is
// neither. A lead has a key for each teammate that it starts; a member that joins by hand has none.
func (s *Slot) LeadKey(ctx context.Context, given string) (*teamfiles.LeadKey, error) {
	c, err := s.team.Config(ctx)
	if err != nil {
		return nil, err
	}
	var lead projection.LeadProcess
	if c.LeadProcess != nil {
		lead = *c.LeadProcess
	}
	if given == "" {
		if s.occupant.Key.Key == "" || s.occupant.Key.Lead != lead {
			return nil, nil
		}
		return teamfiles.ParseLeadKey(s.occupant.Key.Key)
	}
	key, err := teamfiles.ParseLeadKey(given)
	if err != nil {
		return nil, err
	}
	s.occupant.Key = leadKey{lead, given}
	return key, s.save()
}

// ReportKilled cleans up after a member that was killed. It ends the remaining processes of its
// agent, notifies the lead, and removes a member that joined by hand from the roster. The slot and
// the mail stay for a successor under the same name. claude is Claude Code's folder, and again is
// the command that starts the successor.
func ReportKilled(ctx context.Context, claude, root, teamName, name, again string) error {
	t, gone := teamfiles.Open(claude, teamName)
	if err := errors.Join(team.CheckName("team", teamName), team.CheckName("member", name)); err != nil {
		return err
	}
	s := &Slot{team: t, name: name, dir: filepath.Join(root, teamName, name)}
	if err := s.open(ctx); err != nil {
		if team.CodeOf(err) == team.Taken { // a successor is running already
			return nil
		}
		return err
	}
	defer s.Procs.Close(ctx)
	s.occupant = s.previous()
	// the lead knows already, or the team has ended
	if s.occupant == (occupant{}) || team.CodeOf(gone) == team.NotFound {
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
	entry, byHand := c.Member(name), s.occupant.JoinedAt != 0
	switch {
	case entry == nil && !byHand: // the lead removed it
		return err
	case entry == nil: // the lead lost the entry when it rewrote the roster; it must be notified even so
		entry = &projection.Member{}
	case byHand && entry.JoinedAt != s.occupant.JoinedAt: // another member has the name now
		return err
	}
	words := fmt.Sprintf("%s was killed; its work has stopped. Messages to it wait until it is started again "+
		"with: %s", name, again)
	if byHand {
		words = fmt.Sprintf("%s was killed and is off the team; its work has stopped. Bring it back with: %s", name,
			again)
	}
	err = errors.Join(err, notifyFailed(ctx, t, c, name, entry.Color, words))
	if byHand {
		return errors.Join(err, t.Leave(ctx, name))
	}
	return errors.Join(err, t.SetActive(ctx, name, false))
}

// notifyFailed tells the lead, in the name of a member that is not running, why its work has
// stopped.
func notifyFailed(ctx context.Context, t *teamfiles.Team, c projection.Config, name, color, words string) error {
	idle := &teamfiles.Idle{From: name, Timestamp: teamfiles.Stamp(time.Now()), Reason: "failed", Failure: words,
		Result: words}
	return t.Send(ctx, stateOf(c, nil, self{name: name}).Team().Lead,
		teamfiles.Entry{From: name, Text: teamfiles.Text(idle), Color: color})
}

// ReportNotStarted tells the lead why a teammate could not be started. The pane shows the reason
// too, but it is closed by then.
func ReportNotStarted(ctx context.Context, t *teamfiles.Team, name, color string, why error) error {
	if err := team.CheckName("member", name); err != nil {
		return err
	}
	c, err := t.Config(ctx)
	if err != nil {
		return err
	}
	return notifyFailed(ctx, t, c, name, color, fmt.Sprintf("%s could not be started, so its work is not done: %v",
		name,
		why))
}
