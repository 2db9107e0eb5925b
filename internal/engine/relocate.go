package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"cadre/internal/consolidate"
	"cadre/internal/host"
	"cadre/internal/journal/store"
	"cadre/internal/layout"
	"cadre/internal/liveness/leader"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Relocated says how a team was moved between files and a database.
type Relocated struct {
	Team    string `json:"team"`            // id of the team
	Records int64  `json:"records"`         // records that were copied and compared
	Aside   string `json:"aside,omitempty"` // where an older copy of the team is kept now
}

// Relocate moves a team to another home: from files to a database, or back. It may be killed at any
// moment, and called again: this copy is released before there is another one, and that one
// continues the team only when it is complete and was compared record by record. This copy stays,
// released. The team must not run.
func (e *Engine) Relocate(ctx context.Context, name string, to *Engine) (r Relocated, err error) {
	t, err := e.Open(ctx, name)
	if err != nil {
		return r, err
	}
	defer t.Close()
	of := t.Team()
	r.Team = of.ID
	if of.Parent.Team != "" || of.MaxDepth > 0 || len(of.Children) > 0 {
		return r, team.Refuse(team.Invalid, "team %s has teams in it, or is in one, and those are not moved yet", name)
	}
	lease, err := t.Shared().Acquire(ctx, store.Relocation)
	if err != nil {
		return r, team.Refuse(team.NotReady, "another process moves team %s: %v", name, err)
	}
	defer lease.Release()
	ctx, stop := store.While(ctx, lease)
	defer stop()
	if err := t.Refresh(ctx); err != nil { // the other one may have moved it
		return r, err
	}
	of = t.Team()
	if of.Released == (team.Released{}) { // what would fail later is refused before anything changes
		if err := to.canReceive(ctx, t); err != nil {
			return r, err
		}
	}
	if err := t.releaseTo(ctx, placeOf(to.Home)); err != nil {
		return r, err
	}
	records, err := t.records(ctx)
	if err != nil {
		return r, err
	}
	r.Records = int64(len(records))
	folder, further, err := to.receive(ctx, t.Team(), records, &r)
	if err != nil || further {
		return r, err
	}
	there, err := to.OpenIn(ctx, of.ID, folder)
	if err != nil {
		return r, err
	}
	defer there.Close()
	if err := t.copyValues(ctx, there); err != nil {
		return r, err
	}
	_, err = there.Do(ctx, Command(team.User, &team.TakeBackTeam{Machine: t.Team().Released.Machine}))
	return r, err
}

// placeOf names where the teams of a home live.
func placeOf(h layout.Home) string {
	if h.Place != nil {
		return h.Place.Called
	}
	return "the files in " + h.Root
}

// releaseTo releases the team to the place, and ends what it left on this machine.
func (t *Team) releaseTo(ctx context.Context, place string) error {
	of := t.Team()
	machine, _ := os.Hostname()
	mark := team.MovedTo(machine, place)
	if released := of.Released; released != (team.Released{}) && released.Machine != mark {
		return team.Refuse(team.NotReady, "team %s was released by %s, and may continue elsewhere", of.Name,
			released.Machine).With(team.Hint{Action: team.ActTakeBack, Team: of.Name})
	}
	if host.Hosted(ctx, t.Shared()) {
		return team.Refuse(team.NotReady, "team %s is running", of.Name).
			With(team.Hint{Action: team.ActShowAlive, Team: of.Name})
	}
	if of.Released == (team.Released{}) {
		if err := t.releaseAs(ctx, mark); err != nil {
			return err
		}
	}
	if now := t.Team().Released.Machine; now != mark {
		return team.Refuse(team.NotReady, "team %s was released by %s meanwhile", of.Name, now)
	}
	ending, cancel := context.WithTimeoutCause(ctx, settleTime,
		errors.New("processes of the team are still running, or it cannot be seen whether they are"))
	defer cancel()
	if err := host.Settle(ending, t.Shared(), t.Hosts(), of.Dir, t.engine.Note); err != nil {
		return err
	}
	return host.KeepWork(ctx, t.Dir, of.Dir, t.engine.Note)
}

// settleTime bounds the wait for what a team left on this machine.
const settleTime = time.Minute

func (t *Team) releaseAs(ctx context.Context, mark string) error {
	of := t.Team()
	lease, err := leader.Claim(ctx, t.Shared())
	if err != nil {
		return team.Refuse(team.NotReady, "a process leads team %s, so it cannot be moved: %v", of.Name, err).
			With(team.Hint{Action: team.ActShowAlive, Team: of.Name})
	}
	defer lease.Release()
	procs, err := proc.Open("")
	if err != nil {
		return err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	if err := host.RecordWork(ctx, t.Replica, procs, t.Dir, "", t.engine.Note); err != nil {
		return err
	}
	bodies := []team.Body{&team.ReleaseTeam{Machine: mark}}
	if of.LeadSession != "" && of.LeadSession != team.User { // it has ended, or its lease would be held
		bodies = append([]team.Body{&team.AttachLead{Session: team.User, TakeOver: true}}, bodies...)
	}
	for _, body := range bodies {
		if _, err := t.Do(ctx, Command(team.User, body)); err != nil {
			return err
		}
	}
	return nil
}

// records returns all records of the team.
func (t *Team) records(ctx context.Context) (all [][]byte, err error) {
	for r, err := range t.History(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, bytes.Clone(r.Data))
	}
	return all, nil
}

// canReceive refuses a team that this home cannot have: it cannot be reached, another team has the
// name, or it has more of the team than its present home.
func (e *Engine) canReceive(ctx context.Context, t *Team) error {
	of := t.Team()
	if _, err := e.Home.Names(); err != nil {
		return err
	}
	if e.Home.InArchive(of.ID) != "" {
		return team.Refuse(team.Taken, "%s has team %s in its archive", placeOf(e.Home), of.ID)
	}
	folder := e.Home.Has(of.ID)
	if folder == "" {
		_, err := e.Home.Vacant(of)
		return err
	}
	theirs, err := e.recordsIn(ctx, folder)
	if err != nil {
		return err
	}
	ours, err := t.records(ctx)
	if err == nil && common(theirs, ours) < len(theirs) {
		err = e.differs(of, common(theirs, ours))
	}
	return err
}

// differs refuses a team of which the home has another history after so many records.
func (e *Engine) differs(of team.Team, same int) error {
	return team.Refuse(team.Finished, "%s has another history of team %s: the two differ from record %d on",
		placeOf(e.Home), of.Name, same+1)
}

// receive makes a copy of a released team, and compares it. An older copy, such as that of an
// attempt that was killed, or the one that the team came from, is replaced. It returns the folder.
// further says that the team has continued there before.
func (e *Engine) receive(ctx context.Context, of team.Team, records [][]byte, r *Relocated) (folder string,
	further bool, err error) {
	if folder = e.Home.Has(of.ID); folder != "" {
		theirs, err := e.recordsIn(ctx, folder)
		if err != nil {
			return "", false, err
		}
		switch same := common(theirs, records); {
		case same == len(records): // an earlier attempt came so far, or to its end
			return folder, same < len(theirs), nil
		case same < len(theirs), !released(theirs):
			return "", false, e.differs(of, same)
		}
		if r.Aside, err = e.setAside(folder); err != nil {
			return "", false, err
		}
	}
	if folder, err = e.Home.Adopt(of, records); err != nil {
		return "", false, err
	}
	theirs, err := e.recordsIn(ctx, folder)
	if err == nil && (len(theirs) != len(records) || common(theirs, records) != len(records)) {
		err = fmt.Errorf("the copy of team %s in %s differs from record %d on", of.Name, placeOf(e.Home),
			common(theirs, records)+1)
	}
	return folder, false, err
}

// released reports whether a history ends with the release of its team.
func released(records [][]byte) bool {
	if len(records) == 0 {
		return false
	}
	last, err := team.DecodeRecord(int64(len(records)), string(records[len(records)-1]))
	if err != nil {
		return false
	}
	_, is := team.EventIn[*team.TeamReleased](last)
	return is
}

// setAside makes room for a newer copy of a team. It returns where a copy on files is kept.
func (e *Engine) setAside(folder string) (string, error) {
	if e.Home.Place != nil {
		return "", e.Home.Remove(folder, nil)
	}
	return e.Home.SetAside(folder, layout.Replaced)
}

// recordsIn returns all records of the team in a folder of the home.
func (e *Engine) recordsIn(ctx context.Context, folder string) ([][]byte, error) {
	t, err := e.LookIn(ctx, folder)
	if err != nil {
		return nil, err
	}
	all, err := t.records(ctx)
	return all, errors.Join(err, t.Close())
}

// common returns how many records two histories have in common.
func common(a, b [][]byte) (n int) {
	for n < len(a) && n < len(b) && bytes.Equal(a[n], b[n]) {
		n++
	}
	return n
}

// copyValues copies what the team keeps beside its history and cannot be had again.
func (t *Team) copyValues(ctx context.Context, to *Team) error {
	from, into := t.Shared(), to.Shared()
	keys := host.SavedWorkKeys(t.Replica)
	patches, err := from.All(ctx, host.PatchFolder)
	if err != nil {
		return err
	}
	for _, p := range patches {
		keys = append(keys, p.Key)
	}
	for _, key := range keys {
		data, err := from.Get(ctx, key)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = into.Put(ctx, key, data)
		}
		if err != nil {
			return err
		}
	}
	data, err := from.Get(ctx, consolidate.RecordFile)
	if err == nil {
		_, err = into.PutOnce(ctx, consolidate.RecordFile, data)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err
}
