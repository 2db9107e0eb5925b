package wake

import (
	"encoding/json"
	"path/filepath"
	"slices"

	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// News is what waits for a member and is worth a turn. Messages do not become news in the order of
// their numbers. A message that is held until the team has a lead again becomes news after later
// messages of the user.
type News struct {
	Seqs []int64 `json:"messages"` // numbers, in order
	// Resent counts how often late messages were sent again. They keep their numbers, so only the
	// count shows that the session has to be woken for them again.
	Resent int64 `json:"resent,omitempty"`
}

// NewsOf returns what waits for the member.
func NewsOf(s *team.State, member string) News {
	m, _ := s.Member(member)
	return News{Seqs: s.News(member), Resent: m.Resent}
}

// includes reports whether a session that was woken for n need not be woken for other.
func (n News) includes(other News) bool {
	return len(other.Seqs) == 0 || n.Resent == other.Resent &&
		!slices.ContainsFunc(other.Seqs, func(seq int64) bool {
			_, there := slices.BinarySearch(n.Seqs, seq)
			return !there
		})
}

// lastWake records what a session was last woken for. It is in a file, because the process that
// wakes a session then ends. So a session that does not read its messages is not woken again until
// there are new ones.
type lastWake struct {
	News
	// Pid and Start identify the session's server of tools. The record does not apply to another
	// session.
	Pid   int    `json:"pid"`
	Start string `json:"start"`
}

// maxLastWake bounds how much of the file is read, in bytes: some 100,000 messages.
const maxLastWake = 1 << 20

// Lock returns the path of the lock of the one process that waits for news for the member.
func Lock(teamDir, member string) string { return filepath.Join(teamDir, "wake-"+member+".lock") }

func lastWakePath(teamDir, member string) string {
	return filepath.Join(teamDir, "wake-"+member+".json")
}

// lastWakeNews returns what the session with that server was last woken for; nothing if the file
// cannot be read.
func lastWakeNews(teamDir, member string, server proc.Holder) News {
	var last lastWake
	data, err := regularfile.Read(lastWakePath(teamDir, member), maxLastWake)
	if err != nil || json.Unmarshal(data, &last) != nil || last.Pid != server.Pid || last.Start != server.Start {
		return News{}
	}
	return last.News
}

// recordWake records that the session with that server is woken for the news. The caller holds the
// lock.
func recordWake(teamDir, member string, server proc.Holder, news News) error {
	data, err := json.Marshal(lastWake{News: news, Pid: server.Pid, Start: server.Start})
	if err != nil {
		return err
	}
	return atomicfile.Write(lastWakePath(teamDir, member), data)
}
