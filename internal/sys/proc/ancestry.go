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

// Origin describes where a process comes from, according to its ancestors and the register of the
// nearest host among them. It does not use the environment, which a process can change.
type Origin struct {
	Host int // pid of the host
	// Own means that the host's program started the process itself, without its register. Such a
	// process is in the host's session. A register's child never is.
	Own bool
	// Record is the register's child that the process is or descends from; nil if unknown.
	Record *Record
	// Left means that the process no longer descends from a register's child: a parent in between
	// ended, and the host, a subreaper, became its parent. Record, if set, is then found by the
	// session that the process is still in.
	Left bool
	// Hidden means that this process cannot see a running host, because it is in another PID or
	// time namespace, where pids and start times differ. It may or may not run below that host.
	// Teams then lists the teams of all such hosts.
	Hidden bool
	// Teams is the team of Record, or else all teams whose sessions the host runs. "" stands for a
	// team without a folder. A register that stands for a process ([OpenWhole]) has no team.
	Teams []string
}

// Ancestry finds the nearest listed ancestor of this process, and where below it the process comes
// from. below is false if no ancestor is listed and every running listed host is visible. An empty
// list costs one system call, otherwise each ancestor costs some 10 µs.
func Ancestry(list string) (origin Origin, below bool, err error) {
	return AncestryOf(list, ownPid())
}

// AncestryOf is [Ancestry] for another process. The error is [os.ErrNotExist] if no process has
// that pid.
//
// A host that is killed closes its files before the kernel gives its children another parent, which
// may take a while on a busy machine. AncestryOf waits for that. The children are then below no
// host.
func AncestryOf(list string, pid int) (origin Origin, below bool, err error) {
	for end := time.Now().Add(dyingPatience); ; time.Sleep(10 * time.Millisecond) {
		var hosts []entry
		origin, below, hosts, err = ancestryOf(list, pid)
		unknown := origin.Left && origin.Record == nil
		if err != nil || !unknown || !released(hosts) || time.Now().After(end) {
			return origin, below, err
		}
	}
}

// dyingPatience is how long a host may take to end after it has released its lock.
const dyingPatience = 5 * time.Second

// released reports whether the host of these entries has released its locks. A running host holds
// all of them. A killed host may hold one for longer; see [filelock.Held]. If it does so for too
// long, the process counts as left behind: its origin names the host, and has no record.
func released(entries []entry) bool {
	held := func(e entry) bool { return filelock.Held(filepath.Join(e.Dir, AliveFile)) }
	if !slices.ContainsFunc(entries, func(e entry) bool { return !held(e) }) {
		return false
	}
	for end := time.Now().Add(releasePatience); slices.ContainsFunc(entries, held); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// ancestryOf looks once. found are the entries of the host.
func ancestryOf(list string, pid int) (origin Origin, below bool, found []entry, err error) {
	hosts, err := listed(list)
	if err != nil || len(hosts) == 0 {
		return Origin{}, false, nil, err
	}
	child, err := lookup(pid)
	if err != nil {
		return Origin{}, false, nil, fmt.Errorf("look up process %d: %w", pid, err)
	}
	for {
		parent, ok, err := parentOf(&child)
		if err != nil {
			return Origin{}, false, nil, err
		}
		if !ok {
			origin := hiddenHosts(hosts)
			return origin, origin.Hidden, nil, nil
		}
		var entries []entry
		for _, path := range hosts[parent.pid] {
			e, err := readEntry(path)
			if errors.Is(err, fs.ErrNotExist) { // the host has just removed it: it runs no sessions any more
				continue
			}
			if err != nil {
				return Origin{}, false, nil, fmt.Errorf("cannot find the host of process %d: %w; remove that file", pid,
					err)
			}
			if e.Pid == parent.pid && e.Start == parent.start {
				entries = append(entries, e)
			}
		}
		if len(entries) > 0 {
			return originOf(child, parent, entries), true, entries, nil
		}
		child = parent
	}
}

// hiddenHosts returns the listed hosts that are running but invisible to this process. If this
// process sees all processes, there are none: a host in another namespace has all of its sessions
// in there.
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

// releasePatience is how long a killed host's lock may stay held; see [filelock.Held].
const releasePatience = 200 * time.Millisecond

// hidden reports whether the host of an entry is running but invisible. Its lock is visible in
// every namespace.
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

// Starter returns the program that runs this process: its nearest ancestor that is not a shell
// running a command or a script. Agents run their hooks, and maybe their servers, through such
// shells. ok is false if the system shows no such ancestor.
//
// If the starter has ended, the result is process 1 or another process that adopts orphans. In a
// container, an agent may itself be process 1.
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

// shells lists the programs that run commands for others.
var shells = []string{"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh"}

// shellCommand reports whether the arguments make a shell run a command or a script. A shell
// without either reads what a person types, and counts as a program of its own.
func shellCommand(args []string) bool {
	return len(args) > 0 && slices.Contains(shells, filepath.Base(args[0])) &&
		slices.ContainsFunc(args[1:], func(arg string) bool { return !strings.HasPrefix(arg, "-") })
}

// parentOf returns the parent of a process. It updates child if its parent has changed meanwhile.
// ok is false at the topmost visible process.
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
		if now.parent == child.parent { // the parent is hidden from this process
			return process{}, false, nil
		}
		*child = now
	}
	return process{}, false, nil
}

// originOf returns the origin below a host. The host is the parent of child, which is the process
// itself or one of its ancestors.
func originOf(child, host process, entries []entry) Origin {
	o := Origin{Host: host.pid, Own: child.session == host.session}
	for _, e := range entries {
		if r, err := readRecord(e.Dir, child.pid); err == nil && r.Start == child.start {
			o = Origin{Host: host.pid, Record: &r, Teams: []string{e.Team}}
			if e.Whole {
				o.Teams = nil
			}
			return o
		}
		if !e.Whole {
			o.Teams = append(o.Teams, e.Team)
		}
	}
	if o.Own {
		return o
	}
	// A process cannot join an existing session except by birth. While the leader's record exists,
	// its pid has not been reused.
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
