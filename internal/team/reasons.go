package team

import (
	"slices"
	"strings"
)

// The reasons that cadre itself gives for the end or the silence of a session. A host reports them
// in the same field as a program's own words. The team's messages state these reasons directly, and
// quote every other one.
const (
	AsAsked     = "shut down as asked"
	AtDeadline  = "shut down at the deadline"
	NoSession   = "shut down; it had no session that could be asked"
	NoHost      = "shut down; it had no host"
	LeftAlone   = "shut down while it was left alone after a failure"
	WorkMerged  = "its work is merged"
	EndedItself = "its session ended by itself"
	SessionOver = "its session has ended"
	HostOver    = "the host that ran its session has ended"
)

// ownReasons lists these reasons, and at the end the words that earlier versions recorded.
var ownReasons = []string{AsAsked, AtDeadline, NoSession, NoHost, LeftAlone, WorkMerged, EndedItself, SessionOver,
	HostOver, "its work is home", "its session is gone", "the host that ran its session is gone"}

// because puts a reason at the end of a sentence: behind a colon where it is cadre's own, else
// quoted on lines of its own.
func because(reason string) string {
	if reason == "" {
		return "."
	}
	own, said, found := strings.Cut(reason, ": ")
	switch {
	case isOwn(reason), found && isOwn(own) && isOwn(said):
		return ": " + reason + "."
	case found && isOwn(own):
		return ": " + own + ":" + cited(said)
	}
	return ":" + cited(reason)
}

func isOwn(reason string) bool { return slices.Contains(ownReasons, reason) }
