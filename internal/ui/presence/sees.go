package presence

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cadre/internal/sys/proc"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

const (
	// mostRecords bounds the records that a reader reads.
	mostRecords = 256
	// maxSize bounds the size of a record, in bytes.
	maxSize = 4 << 10
	// tmuxTime bounds one call of tmux.
	tmuxTime = 2 * time.Second
)

// Shown is what all processes of a home show at one moment, to a person who may look at it or not.
type Shown struct {
	ctx     context.Context
	now     team.Time
	records []record
	watched map[int]bool // the records that were checked, by index
}

// Read returns what the processes of the home show now.
func Read(ctx context.Context, home string, now team.Time) *Shown {
	s := &Shown{ctx: ctx, now: now, watched: map[int]bool{}}
	folder := Folder(home)
	entries, _ := os.ReadDir(folder)
	for _, e := range entries[:min(len(entries), mostRecords)] {
		path := filepath.Join(folder, e.Name())
		if !lives(e.Name()) { // the process was killed
			os.Remove(path)
			continue
		}
		data, err := regularfile.Read(path, maxSize)
		var r record
		if err != nil || json.Unmarshal(data, &r) != nil || !proc.Alive(r.Pid, r.Start) {
			continue
		}
		s.records = append(s.records, r)
	}
	return s
}

// Seen reports whether the person looks at something that shows the member. With the member "", it
// is about the whole team. It asks tmux at most once about each process.
func (s *Shown) Seen(name, id, member string) bool {
	for i, r := range s.records {
		if !r.View.has(name, id, member) {
			continue
		}
		watched, checked := s.watched[i]
		if !checked {
			watched = r.watched(s.ctx, s.now)
			s.watched[i] = watched
		}
		if watched {
			return true
		}
	}
	return false
}

// lives reports whether the process with the pid in a record's name exists.
func lives(name string) bool {
	pid, _, _ := strings.Cut(name, "-")
	n, err := strconv.Atoi(pid)
	if err == nil {
		_, err = proc.StartTime(n)
	}
	return err == nil
}

// watched reports whether the person looks at what the process shows.
func (r record) watched(ctx context.Context, now team.Time) bool {
	if r.Tmux != "" {
		return shown(ctx, r.Tmux, r.Pane, now)
	}
	switch r.Focus {
	case here:
		return now.Sub(r.At) <= Attentive
	case away:
		return false
	}
	return now.Sub(r.At) <= Briefly
}

// shown reports whether a client of the tmux has the focus and shows the pane's window. tmux
// reports that a client without focus events always has the focus, so its last key counts.
func shown(ctx context.Context, socket, pane string, now team.Time) bool {
	ctx, cancel := context.WithTimeout(ctx, tmuxTime)
	defer cancel()
	window, err := ask(ctx, socket, "display-message", "-p", "-t", pane, "#{window_id} #{pane_id}")
	if err != nil || !strings.HasSuffix(window, " "+pane) { // the pane has closed
		return false
	}
	window, _, _ = strings.Cut(window, " ")
	asks, err := ask(ctx, socket, "show-options", "-sv", "focus-events")
	if err != nil {
		return false
	}
	within := Briefly
	if asks == "on" {
		within = Attentive
	}
	clients, _ := ask(ctx, socket, "list-clients", "-F", "#{window_id} #{client_activity} #{client_flags}")
	for line := range strings.Lines(clients) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] != window || !strings.Contains(","+f[2]+",", ",focused,") {
			continue
		}
		typed, err := strconv.ParseInt(f[1], 10, 64)
		if err == nil && now.Sub(team.Time(typed*1000)) <= within {
			return true
		}
	}
	return false
}

// ask runs a command in the tmux at the socket, and returns its output.
func ask(ctx context.Context, socket string, args ...string) (string, error) {
	procs, err := proc.Open("")
	if err != nil {
		return "", err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	out := &proc.Capture{Head: 64 << 10}
	exit, err := procs.Run(ctx, proc.Cmd{Args: append([]string{"tmux", "-S", socket}, args...), Stdout: out},
		proc.Ladder{Term: -1})
	if err == nil && exit.Code != 0 {
		err = os.ErrNotExist
	}
	return strings.TrimSpace(out.String()), err
}
