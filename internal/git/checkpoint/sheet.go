package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strings"

	"cadre/internal/sys/lazyregexp"
	"cadre/internal/team"
)

// sheet is a file with a part of what a team is restored from. All checkpoints share it until that
// part changes.
type sheet struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// The sheets. For messages, tasks and changes of notes there is one per hundred numbers, if any of
// these exists.
const (
	teamSheet     = "restore/team.json"
	baseSheet     = "restore/base.json"
	memberSheet   = "restore/members.jsonl"
	messageSheets = "restore/messages/"
	taskSheets    = "restore/tasks/"
	noteSheets    = "restore/notes/"
)

// perSheet bounds how much is rewritten when one message, task or note changes.
const perSheet = 100

// sheetNames and digests match valid names and digests of sheets. They come from a branch that may
// be forged, and go into paths and git commands.
var (
	sheetNames = lazyregexp.New(`^restore/(?:[a-z]+/)?[a-z0-9]+\.jsonl?$`)
	digests    = lazyregexp.New(`^[0-9a-f]{64}$`)
)

func (s sheet) check() error {
	if !sheetNames().MatchString(s.Name) || !digests().MatchString(s.SHA256) {
		return fmt.Errorf("%s names a sheet %.100q that cannot be one", stateFile, s.Name)
	}
	return nil
}

// file returns the path of the sheet. Each content has another path, so the last checkpoint stays
// complete until the next one is complete.
func (s sheet) file() string {
	ending := path.Ext(s.Name)
	return fmt.Sprintf("%s-%.12s%s", strings.TrimSuffix(s.Name, ending), s.SHA256, ending)
}

// holds reports whether the text is the sheet's.
func (s sheet) holds(text []byte) bool {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]) == s.SHA256
}

// write gives the image its sheets, and adds the files of sheets that the last image lacks.
func (d *draft) write(next *image) {
	before := map[string]sheet{}
	if d.prev != nil {
		for _, s := range d.prev.doc.Sheets {
			before[s.Name] = s
		}
	}
	add := func(name string, text []byte) {
		old, there := before[name]
		next.from[name] = sha256.Sum256(text)
		if there && d.prev.from[name] == next.from[name] {
			next.doc.Sheets = append(next.doc.Sheets, old)
			return
		}
		text = RedactJSON(text)
		sum := sha256.Sum256(text)
		s := sheet{name, hex.EncodeToString(sum[:])}
		next.doc.Sheets = append(next.doc.Sheets, s)
		if s != old {
			d.files[s.file()] = text
		}
	}
	add(teamSheet, []byte(d.kept.Team+"\n"))
	add(baseSheet, []byte(d.kept.Base+"\n"))
	add(memberSheet, []byte(strings.Join(d.kept.Members, "\n")+"\n"))
	runs(d.kept.Messages, messageSheets, add)
	runs(d.kept.Tasks, taskSheets, add)
	runs(d.kept.Notes, noteSheets, add)
}

// runs divides ordered pieces into sheets.
func runs(all []team.Piece, stem string, add func(name string, text []byte)) {
	var text []byte
	for i, p := range all {
		text = append(append(text, p.JSON...), '\n')
		if run := p.N / perSheet; i == len(all)-1 || all[i+1].N/perSheet != run {
			add(fmt.Sprintf("%s%04d.jsonl", stem, run), text)
			text = nil
		}
	}
}

// kept reads the content of the sheets.
func kept(sheets []sheet, texts [][]byte) (k team.Kept, err error) {
	if len(sheets) == 0 {
		return k, fmt.Errorf("%s lacks the data that a team is restored from: an earlier version of cadre made it",
			stateFile)
	}
	for i, s := range sheets {
		switch {
		case texts[i] == nil:
			return k, fmt.Errorf("%s is missing", s.file())
		case !s.holds(texts[i]):
			return k, fmt.Errorf("%s was damaged or changed by hand: its digest is not the one in %s",
				s.file(), stateFile)
		}
		text := string(texts[i])
		pieces := func(to *[]team.Piece) {
			for line := range strings.Lines(text) {
				*to = append(*to, team.Piece{JSON: line})
			}
		}
		switch {
		case s.Name == teamSheet:
			k.Team = text
		case s.Name == baseSheet:
			k.Base = text
		case s.Name == memberSheet:
			for line := range bytes.Lines(texts[i]) {
				k.Members = append(k.Members, string(line))
			}
		case strings.HasPrefix(s.Name, messageSheets):
			pieces(&k.Messages)
		case strings.HasPrefix(s.Name, taskSheets):
			pieces(&k.Tasks)
		case strings.HasPrefix(s.Name, noteSheets):
			pieces(&k.Notes)
		default:
			return k, fmt.Errorf("%s names a sheet %q that this cadre does not know; update cadre", stateFile, s.Name)
		}
	}
	return k, nil
}
