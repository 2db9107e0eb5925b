package host

import (
	"context"
	"fmt"
	"strings"

	"cadre/internal/journal/store"
	"cadre/internal/sys/proc"
)

// HoldAbort shows other processes that this one ends the team, until done is called: when the teams
// in it have ended, too. If another process shows it already, done does nothing.
func HoldAbort(ctx context.Context, leases store.Leases) (done func()) {
	lease, err := leases.Acquire(ctx, store.Abort)
	if err != nil { // it only keeps others from calling for an abort
		return func() {}
	}
	return func() { lease.Release() }
}

// Aborting reports whether a process ends the team.
func Aborting(ctx context.Context, leases store.Leases) bool { return leases.Held(ctx, store.Abort) }

// Sessions names the processes of members that run below hosts in the folder, on this machine, as a
// clause to append: ": ann (process 71)". It returns "" for none.
func Sessions(hosts string) string {
	var all []string
	for _, dir := range Running(hosts) {
		records, _ := proc.Records(dir) // an unreadable record is of a process that is about to begin or end
		for _, r := range records {
			if r.Member != "" && proc.Alive(r.Pid, r.Start) {
				all = append(all, fmt.Sprintf("%s (process %d)", r.Member, r.Pid))
			}
		}
	}
	if len(all) == 0 {
		return ""
	}
	return ": " + strings.Join(all, ", ")
}
