package feed

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cadre/internal/regularfile"
	"cadre/internal/team"
	"cadre/internal/watch"
)

// Transcripts is a feed of all transcripts below a folder, those that come later too: Claude Code writes one for each session, and one for each teammate and
// subagent within it. Beside some stands a file that says whose they are.
type Transcripts struct {
	Dir    string // one project's folder, or a folder with a folder projects, such as Claude Code's own
	Follow bool   // go on with what is written later
}

const (
	transcriptSuffix = ".jsonl"
	aboutSuffix      = ".meta.json"
)

// about says whose transcript stands beside it. Each version says it in its own way.
type about struct {
	Name      string `json:"name"`
	TaskKind  string `json:"taskKind"`
	TeamName  string `json:"teamName"`
	AgentType string `json:"agentType"` // an older version writes a teammate's name here, and a subagent's kind
}

// Run implements [Feed].
func (f *Transcripts) Run(ctx context.Context, to Listener) error {
	root := f.Dir
	if projects := filepath.Join(f.Dir, "projects"); isFolder(projects) {
		root = projects
	}
	switch _, err := os.Stat(root); {
	case err == nil && !isFolder(root):
		return &team.Error{Code: team.Invalid, Text: f.Dir + " is no folder; one transcript is a file like any other"}
	case err != nil && !f.Follow:
		return err
	}
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	r := &reading{to: to, folders: watch.New(), follow: f.Follow, tails: map[string]*tail{}, unknown: map[string]about{}, introduced: map[string]bool{}}
	defer r.folders.Close()
	everything := func() { r.look(root) }
	for r.folders.Look(everything); f.Follow; {
		changed, _, ok := r.folders.Wait(ctx, r.folders.Pace())
		if !ok {
			return nil
		}
		if len(changed) == 0 {
			r.folders.Look(everything)
			continue
		}
		slices.Sort(changed)
		for _, path := range slices.Compact(changed) {
			r.changed(path)
		}
		r.introduce()
	}
	return nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// reading is a run of [Transcripts].
type reading struct {
	to         Listener
	folders    *watch.Folders
	follow     bool
	tails      map[string]*tail // by path
	unknown    map[string]about // what is said of the transcript of that path, while nobody of that name is in the team
	introduced map[string]bool
}

// look looks at everything below a folder: what is said of transcripts first, then the transcripts, the oldest first.
func (r *reading) look(folder string) {
	type found struct {
		path string
		at   int64
	}
	var transcripts []found
	_ = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil: // it went
		case e.IsDir():
			if r.follow {
				r.folders.Add(path) // before it is listed: what comes after wakes
			}
		case strings.HasSuffix(path, aboutSuffix):
			r.about(path)
		case strings.HasSuffix(path, transcriptSuffix):
			one := found{path: path}
			if info, err := e.Info(); err == nil {
				one.at = info.ModTime().UnixNano()
			}
			transcripts = append(transcripts, one)
		}
		return nil
	})
	slices.SortFunc(transcripts, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.path, b.path))
	})
	for _, one := range transcripts {
		r.read(one.path)
	}
	r.introduce()
}

func (r *reading) changed(path string) {
	switch {
	case strings.HasSuffix(path, aboutSuffix):
		r.about(path)
	case strings.HasSuffix(path, transcriptSuffix):
		r.read(path)
	case isFolder(path):
		r.look(path)
	}
}

// read reads what is new in a transcript. One that cannot be read is a gap, and no end of the others.
func (r *reading) read(path string) {
	t := r.tails[path]
	if t == nil {
		t = &tail{path: path}
		r.tails[path] = t
	}
	if info, err := os.Stat(path); err == nil && t.info != nil && info.Size() == t.at && os.SameFile(info, t.info) {
		return
	}
	if err := r.reread(t); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.to.Gap(t.path, "the transcript cannot be read: "+err.Error())
	}
}

// reread reads on in a transcript. The file is not kept open: there may be thousands.
func (r *reading) reread(t *tail) error {
	if t.info == nil {
		if err := t.open(r.to.Place(t.path)); err != nil {
			return err
		}
	} else {
		file, err := regularfile.Open(t.path)
		if err != nil {
			return err
		}
		t.file = file
		now, err := file.Stat()
		if err != nil {
			t.close()
			return err
		}
		if !os.SameFile(now, t.info) || now.Size() < t.at {
			t.close()
			if err := t.open(Place{}); err != nil {
				return err
			}
			t.missed = "the transcript was replaced or cut"
		}
		t.info = now
	}
	defer t.close()
	err := t.read(r.to)
	if !r.follow {
		t.end(r.to)
	}
	t.buffer = nil
	return err
}

// maxAbout is the most that is read of what is said of a transcript, in bytes.
const maxAbout = 1 << 20

// about reads what is said of a transcript.
func (r *reading) about(path string) {
	transcript := strings.TrimSuffix(path, aboutSuffix) + transcriptSuffix
	if r.introduced[transcript] {
		return
	}
	data, err := regularfile.Read(path, maxAbout)
	var a about
	if err != nil || json.Unmarshal(data, &a) != nil { // it is being written, and comes again
		return
	}
	switch {
	case a.Name != "" && a.TaskKind == "in_process_teammate":
		r.introduced[transcript] = true
		r.to.Introduce(transcript, a.TeamName, a.Name)
	case a.Name == "" && a.AgentType != "":
		r.unknown[transcript] = a
	}
}

// introduce looks whether the team has by now the members of whom transcripts were said to be.
func (r *reading) introduce() {
	for transcript, a := range r.unknown {
		if r.to.Member(a.AgentType) {
			delete(r.unknown, transcript)
			r.introduced[transcript] = true
			r.to.Introduce(transcript, "", a.AgentType)
		}
	}
}
