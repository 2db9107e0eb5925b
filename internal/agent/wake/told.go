package wake

import (
	"encoding/json"
	"path/filepath"

	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/regularfile"
)

// told is what a session was woken for last by a process that ended with it. It is kept in a file:
// a session that ends its turn without a look at its messages is not woken again before there are
// others.
type told struct {
	News  int64  `json:"news"` // the number of the message
	Pid   int    `json:"pid"`  // of the session's server of tools: another session knows nothing of it
	Start string `json:"start"`
}

// maxTold is the most that is read of what was told, in bytes.
const maxTold = 4 << 10

// Lock is the path of the lock that the one process holds that waits for news for the member.
func Lock(teamDir, member string) string { return filepath.Join(teamDir, "wake-"+member+".lock") }

func toldPath(teamDir, member string) string {
	return filepath.Join(teamDir, "wake-"+member+".json")
}

// News returns the number when it is of a message that the session whose server of tools is that
// process was not woken for yet; otherwise 0. A file that cannot be read tells of nothing.
func News(teamDir, member string, server int, news int64) int64 {
	var last told
	data, err := regularfile.Read(toldPath(teamDir, member), maxTold)
	if err != nil || json.Unmarshal(data, &last) != nil || news > last.News {
		return news
	}
	if start, err := proc.StartTime(server); err != nil || last.Pid != server || last.Start != start {
		return news
	}
	return 0
}

// Tell keeps that the session is woken for the message. The lock is held.
func Tell(teamDir, member string, server int, news int64) error {
	start, err := proc.StartTime(server)
	if err != nil {
		return err
	}
	data, err := json.Marshal(told{News: news, Pid: server, Start: start})
	if err != nil {
		return err
	}
	return atomicfile.Write(toldPath(teamDir, member), data)
}
