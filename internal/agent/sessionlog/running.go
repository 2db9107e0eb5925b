package sessionlog

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/regularfile"
	"cadre/internal/sys/utf8text"
	"cadre/internal/team"
)

// The output of a running tool is not in the log: a chatty command would push everything else out
// of it. MEMBER.running has the last part of each, and is replaced as more comes. A viewer that
// looks rarely misses what came between; the entry of the result has the end.
const (
	mostRunning = 8 << 10                // bytes of each output
	mostOutputs = 4                      // outputs at a time; the output of further tools is not shown
	outputPace  = 150 * time.Millisecond // between two replacements of the file
)

// output is the last part of the output of one running tool.
type output struct {
	ID    string    `json:"id"`
	At    team.Time `json:"at"`    // when the last part came
	Total int64     `json:"total"` // bytes so far
	Tail  []byte    `json:"tail"`  // the last ones, which may be no valid UTF-8
}

// outputs has the outputs of the tools that are running, the oldest first.
type outputs []output

// add adds text to the output of a use. missed bytes came before the text and are not known.
func (o *outputs) add(id, text string, missed int64, at team.Time) {
	i := slices.IndexFunc(*o, func(one output) bool { return one.ID == id })
	if i < 0 {
		if len(*o) == mostOutputs {
			return
		}
		i = len(*o)
		*o = append(*o, output{ID: id})
	}
	one := &(*o)[i]
	one.At, one.Total = at, one.Total+missed+int64(len(text))
	if missed > 0 {
		one.Tail = one.Tail[:0]
	}
	one.Tail = append(one.Tail, text[max(0, len(text)-mostRunning):]...)
	if over := len(one.Tail) - mostRunning; over > 0 {
		one.Tail = append(one.Tail[:0], one.Tail[over:]...)
	}
}

// remove removes the output of a use that ended. It reports whether there was one.
func (o *outputs) remove(id string) bool {
	n := len(*o)
	*o = slices.DeleteFunc(*o, func(one output) bool { return one.ID == id })
	return len(*o) < n
}

// runningPath returns the path of the file with the member's running outputs.
func (f Folder) runningPath(member string) string {
	return filepath.Join(string(f), member+".running")
}

// show replaces the running outputs that viewers see.
func (l *Log) show(all outputs) error {
	path := l.folder.runningPath(l.member)
	if len(all) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return atomicfile.Replace(path, data, atomicfile.Passing{})
}

// glimpse is the file of running outputs at some moment.
type glimpse struct {
	info os.FileInfo // nil if there was no file
	all  outputs     // none in an incomplete or damaged file: the next one replaces it
}

// glance reads the file of running outputs. It reports whether that is another one than the last
// time.
func (v *Viewer) glance() (g glimpse, changed bool) {
	path := v.folder.runningPath(v.member)
	info, err := os.Lstat(path)
	if err != nil { // no tool is running
		v.looked, v.seen = nil, nil
		return g, false
	}
	if v.looked != nil && os.SameFile(info, v.looked) && info.ModTime().Equal(v.looked.ModTime()) {
		return g, false
	}
	g.info = info
	data, err := regularfile.Read(path, 4*mostOutputs*mostRunning)
	if err != nil || json.Unmarshal(data, &g.all) != nil {
		g.all = nil
	}
	g.all = slices.DeleteFunc(g.all, func(one output) bool { return one.Total < int64(len(one.Tail)) })
	return g, true
}

// running returns an entry for each running output that has more than the viewer returned. The
// viewer calls it at the end of the log, where the log got no entry since the glance: the outputs
// then belong to the uses that the viewer knows. The file has no output of a use whose result is in
// the log.
func (v *Viewer) running(g glimpse) (entries []Entry) {
	v.looked = g.info
	seen := map[string]int64{}
	for _, one := range g.all {
		from := v.seen[one.ID]
		if from > one.Total { // another use with the same id
			from = 0
		}
		begins := one.Total - int64(len(one.Tail))
		text := one.Tail[max(0, from-begins):]
		whole := text[:utf8text.Whole(text)]
		seen[one.ID] = one.Total - int64(len(text)-len(whole))
		if len(whole) == 0 {
			continue
		}
		missed := max(0, begins-from)
		if missed > 0 {
			text := whole[utf8text.First(whole):]
			missed, whole = missed+int64(len(whole)-len(text)), text
		}
		entries = append(entries, Entry{Seq: max(v.next-1, 1), At: one.At, Kind: Output, ID: one.ID,
			Text: strings.ToValidUTF8(string(whole), "\uFFFD"), Count: missed})
	}
	v.seen = seen
	return entries
}

// linesOf returns how many lines the text has. Empty ones at its end do not count.
func linesOf(text string) int64 {
	text = strings.TrimRight(text, " \t\r\n")
	if text == "" {
		return 0
	}
	return int64(strings.Count(text, "\n")) + 1
}
