package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cadre/internal/sys/filelock"
)

// Origin is where a process comes from, as its ancestors and the register of the nearest host among
// them tell. Of the environment, which a process can change, it says nothing.
type Origin struct {
	Host int // pid of the host
	// Own means that the host's program started the process itself, without its register: it is of
	// the host's session, which no child of a register ever is.
	Own bool
	// Record is the child of the register that the process is or descends from; nil where that is
	// not known.
	Record *Record
	// Left means that the process is no descendant of a child of the register any more: a parent in
	// between ended, and the host, a subreaper, became its parent. A Record is then that of the
	// session that the process is still in.
	Left bool
	// Hidden means that the process cannot see a host that lives: it is in another PID or time
	// namespace, where every number and start is another one. Whether it runs below that host is
	// not known. Teams are then those of all such hosts.
	Hidden bool
	// Teams are the host's: the one of Record, else all whose sessions its process runs. "" stands
	// for one without a folder.
	Teams []string
}

// Ancestry finds the nearest ancestor of this process that is in the list, and tells where below it
// the process comes from. below is false where no ancestor is listed and every listed host that
// lives can be seen. It costs a system call where the list is empty, and some 10 µs an ancestor
// elsewhere.
func Ancestry(list string) (origin Origin, below bool, err error) {
	return AncestryOf(list, ownPid())
}

// AncestryOf is [Ancestry] for another process. The error is [os.ErrNotExist] if there is none with
// that pid.
func AncestryOf(list string, pid int) (origin Origin, below bool, err error) {
	hosts, err := listed(list)
	if err != nil || len(hosts) == 0 {
		return Origin{}, false, err
	}
	child, err := lookup(pid)
	if err != nil {
		return Origin{}, false, fmt.Errorf("look up process %d: %w", pid, err)
	}
	for {
		parent, ok, err := parentOf(&child)
		if err != nil {
			return Origin{}, false, err
		}
		if !ok {
			origin := hiddenHosts(hosts)
			return origin, origin.Hidden, nil
		}
		var entries []entry
		for _, path := range hosts[parent.pid] {
			e, err := readEntry(path)
			if errors.Is(err, fs.ErrNotExist) { // the host took it back meanwhile: it runs nobody's session any more
				continue
			}
			if err != nil {
				return Origin{}, false, fmt.Errorf("what process %d runs below is not known: %w; remove that file", pid,
					err)
			}
			if e.Pid == parent.pid && e.Start == parent.start {
				entries = append(entries, e)
			}
		}
		if len(entries) > 0 {
			return originOf(child, parent, entries), true, nil
		}
		child = parent
	}
}

// hiddenHosts tells which of the listed hosts live although no process that is to be seen is one of
// them. Where every process is to be seen there is none: a host of another namespace has all of its
// sessions in there.
func hiddenHosts(hosts map[int][]string) (o Origin) {
	if seesAll() {
		return o
	}
	for _, paths := range hosts {
		for _, path := range paths {
			e, err := readEntry(path)
			if err != nil || !hidden(e) {
				continue
			}
			o.Hidden, o.Host = true, e.Pid
			if !slices.Contains(o.Teams, e.Team) {
				o.Teams = append(o.Teams, e.Team)
			}
		}
	}
	return o
}

// releasePatience is how long the lock of a host that was killed may outlive it; see [Held].
const releasePatience = 200 * time.Millisecond

// hidden reports whether the host of an entry lives and cannot be seen. The lock that it holds is
// the same in every namespace.
func hidden(e entry) bool {
	if p, err := lookup(e.Pid); err == nil && p.start == e.Start {
		return false
	}
	alive := filepath.Join(e.Dir, AliveFile)
	for deadline := time.Now().Add(releasePatience); filelock.Held(alive); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return true
		}
	}
	return false
}

// Starter returns the program that runs this process: its nearest ancestor that is not a shell with
// a command or a script to run. An agent runs its hooks, and maybe its servers, by such shells. ok
// is false where the system shows no such ancestor. A process whose starter has ended is that of
// process 1, or of another one that adopts orphans; in a container an agent may itself be process 1.
func Starter() (pid int, ok bool) { return StarterOf(ownPid()) }

// StarterOf is [Starter] for another process.
func StarterOf(pid int) (starter int, ok bool) {
	child, err := lookup(pid)
	if err != nil {
		return 0, false
	}
	for {
		parent, ok, err := parentOf(&child)
		if err != nil || !ok {
			return 0, false
		}
		if args, err := Arguments(parent.pid); err != nil || !shellCommand(args) {
			return parent.pid, true
		}
		child = parent
	}
}

// shells are the programs that run commands for others.
var shells = []string{"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh"}

// shellCommand reports whether these are the arguments of a shell that runs a command or a script.
// One that has neither reads what a person types: it is a program of its own.
func shellCommand(args []string) bool {
	return len(args) > 0 && slices.Contains(shells, filepath.Base(args[0])) &&
		slices.ContainsFunc(args[1:], func(arg string) bool { return !strings.HasPrefix(arg, "-") })
}

// parentOf returns the parent of a process. It brings the child up to date where that has got
// another parent since it was looked at. ok is false at the top of what the system shows.
func parentOf(child *process) (parent process, ok bool, err error) {
	for child.parent > 0 {
		parent, err := lookup(child.parent)
		if err == nil {
			return parent, true, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return process{}, false, fmt.Errorf("look up process %d: %w", child.parent, err)
		}
		now, err := lookup(child.pid)
		if err != nil {
			return process{}, false, fmt.Errorf("look up process %d: %w", child.pid, err)
		}
		if now.parent == child.parent { // it is hidden from us
			return process{}, false, nil
		}
		*child = now
	}
	return process{}, false, nil
}

// originOf tells where below the host a process comes from: child is the process, or its ancestor,
// whose parent the host is.
func originOf(child, host process, entries []entry) Origin {
	o := Origin{Host: host.pid, Own: child.session == host.session}
	for _, e := range entries {
		if r, err := readRecord(e.Dir, child.pid); err == nil && r.Start == child.start {
			return Origin{Host: host.pid, Record: &r, Teams: []string{e.Team}}
		}
		o.Teams = append(o.Teams, e.Team)
	}
	if o.Own {
		return o
	}
	// No process enters a session that it was not born into. While the leader's record is there,
	// its number is nobody else's.
	o.Left = true
	for _, e := range entries {
		r, err := readRecord(e.Dir, child.session)
		if err != nil {
			continue
		}
		if leader, err := lookup(r.Pid); err == nil && leader.start == r.Start {
			o.Record, o.Teams = &r, []string{e.Team}
			return o
		}
	}
	return o
}
