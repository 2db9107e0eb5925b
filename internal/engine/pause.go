package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cadre/internal/host"
	"cadre/internal/liveness/leader"
	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/fswatch"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/sleep"
	"cadre/internal/team"
)

// pauseFile is the file in a host's folder that asks the host to pause. A signal would end a whole
// program, and a program may run hosts of other teams too.
const pauseFile = "pause"

// pauseLook is how often [Team.Pause] checks whether the hosts have ended.
const pauseLook = 20 * time.Millisecond

// Paused is how a team was paused.
type Paused struct {
	Team    team.Team `json:"team"`              // the team as it is now
	Members []string  `json:"members,omitempty"` // members whose sessions were ended
	Hosts   int       `json:"hosts"`             // number of hosts that ended; 0 if none was running
}

// Pause asks the running hosts of the team to end its sessions, and waits until they have ended. A
// process that also led the team has released the lead by then. The members are recorded as paused,
// and the team can be resumed. If ctx ends first, Pause refuses with NotReady; the hosts still end.
func (t *Team) Pause(ctx context.Context) (Paused, error) {
	if err := t.Refresh(ctx); err != nil {
		return Paused{}, err
	}
	of := t.Team()
	if of.Ended() {
		return Paused{}, team.Refuse(team.Finished, "team %s is %s, and has no sessions to pause", of.Name, of.Status).
			With(team.Hint{Action: team.ActShowReview, Team: t.Name})
	}
	if err := t.nestedIn(ctx, "paused", ""); err != nil {
		return Paused{}, err
	}
	asked, err := t.askPause()
	if err != nil {
		return Paused{}, err
	}
	p := Paused{Hosts: len(asked)}
	t.View(func(s *team.State) {
		for _, m := range s.Members() {
			if m.Status.Running() &&
				slices.ContainsFunc(asked, func(h pausing) bool { return filepath.Base(h.dir) == m.Host }) {
				p.Members = append(p.Members, m.Name)
			}
		}
	})
	for t.ending(asked) {
		if sleep.For(ctx, pauseLook) != nil {
			return p, team.Refuse(team.NotReady, "team %s is not paused yet: %s still has to end its sessions", of.Name,
				processes(asked)).With(team.Hint{Action: team.ActShowAlive, Team: t.Name})
		}
	}
	err = t.Refresh(ctx)
	p.Team = t.Team()
	return p, err
}

// pausing is a host that was asked to pause.
type pausing struct {
	dir string
	pid int // 0 if unknown
}

// askPause asks each running host to pause.
func (t *Team) askPause() (asked []pausing, err error) {
	for _, dir := range host.Running(t.Hosts()) {
		h, _, err := proc.HolderOf(filepath.Join(dir, proc.AliveFile)) // the pid is only for people
		if err != nil {
			return asked, err
		}
		err = atomicfile.Replace(filepath.Join(dir, pauseFile), nil, atomicfile.Passing{})
		if errors.Is(err, fs.ErrNotExist) { // it has ended
			continue
		}
		if err != nil {
			return asked, fmt.Errorf("ask process %d to pause team %s: %w", h.Pid, t.Name, err)
		}
		asked = append(asked, pausing{dir, h.Pid})
	}
	return asked, nil
}

// ending reports whether one of the hosts is running, or its process leads the team.
func (t *Team) ending(asked []pausing) bool {
	if slices.ContainsFunc(asked, func(h pausing) bool { return proc.HostAlive(h.dir) }) {
		return true
	}
	pid := leader.Pid(t.Dir)
	return pid != 0 && slices.ContainsFunc(asked, func(h pausing) bool { return h.pid == pid })
}

// processes names the processes of the hosts.
func processes(of []pausing) string {
	var pids []string
	for _, h := range of {
		if proc.HostAlive(h.dir) || len(of) == 1 {
			pids = append(pids, fmt.Sprint(h.pid))
		}
	}
	return "process " + strings.Join(pids, ", ")
}

// awaitPause returns true once a caller asks the host of the folder to pause, and false when ctx
// ends.
func awaitPause(ctx context.Context, dir string) bool {
	folders := fswatch.New()
	defer folders.Close()
	folders.Add(dir)
	for {
		if _, err := os.Lstat(filepath.Join(dir, pauseFile)); err == nil {
			return true
		}
		if _, _, ok := folders.Wait(ctx, folders.Pace()); !ok {
			return false
		}
	}
}
