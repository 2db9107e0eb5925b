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

// News is what waits for a member and is worth a turn of its session. Messages do not become news in
// the order of their numbers: a message that is held until the team has a lead again becomes news
// after messages of the user that were sent later.
type News struct {
	Seqs []int64 `json:"messages"` // numbers, in order
	// Resent counts how often late messages were sent again. They keep their numbers, so the count
	// alone shows that somebody wants the session woken for them once more.
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

// told is what a session was woken for last. It is kept in a file, because the process that wakes a
// session ends with it: a session that ends its turn without reading its messages is not woken again
// before there are others.
type told struct {
	News
	// Pid and Start are those of the session's server of tools: another session knows nothing of it.
	Pid   int    `json:"pid"`
	Start string `json:"start"`
}

// maxTold is the most that is read of what was told, in bytes: some 100,000 messages.
const maxTold = 1 << 20

// Lock is the path of the lock that the one process holds that waits for news for the member.
func Lock(teamDir, member string) string { return filepath.Join(teamDir, "wake-"+member+".lock") }

func toldPath(teamDir, member string) string {
	return filepath.Join(teamDir, "wake-"+member+".json")
}

// lastTold returns what the session with that server was woken for last. A file that cannot be read
// tells of nothing.
func lastTold(teamDir, member string, server proc.Holder) News {
	var last told
	data, err := regularfile.Read(toldPath(teamDir, member), maxTold)
	if err != nil || json.Unmarshal(data, &last) != nil || last.Pid != server.Pid || last.Start != server.Start {
		return News{}
	}
	return last.News
}

// tell records that the session with that server is woken for the news. The lock is held.
func tell(teamDir, member string, server proc.Holder, news News) error {
	data, err := json.Marshal(told{News: news, Pid: server.Pid, Start: server.Start})
	if err != nil {
		return err
	}
	return atomicfile.Write(toldPath(teamDir, member), data)
}
