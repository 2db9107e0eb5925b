package source

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cadre/internal/sys/fswatch"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// Transcripts is a feed of all transcripts below a folder, those that come later too: Claude Code
// writes one for each session, and one for each teammate and subagent within it. Beside some stands
// a file that says whose they are. What is new in several of them comes in the order of the times
// in their lines.
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
	r := &reading{to: to, folders: fswatch.New(), follow: f.Follow, tails: map[string]*tail{},
		unknown: map[string]about{}, introduced: map[string]bool{}}
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
		r.changed(changed)
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
	folders    *fswatch.Folders
	follow     bool
	tails      map[string]*tail // by path
	unknown    map[string]about // what is said of the transcript of that path, while nobody of that name is in the team
	introduced map[string]bool
	buffer     []byte
}

// look looks at everything below a folder: what is said of transcripts first, then the transcripts.
func (r *reading) look(folder string) { r.read(r.found(folder)) }

// found reads what is said of the transcripts below a folder, and returns these.
func (r *reading) found(folder string) (transcripts []string) {
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
			transcripts = append(transcripts, path)
		}
		return nil
	})
	return transcripts
}

// changed looks at what changed.
func (r *reading) changed(paths []string) {
	var transcripts []string
	for _, path := range paths {
		switch {
		case strings.HasSuffix(path, aboutSuffix):
			r.about(path)
		case strings.HasSuffix(path, transcriptSuffix):
			transcripts = append(transcripts, path)
		case isFolder(path):
			transcripts = append(transcripts, r.found(path)...)
		}
	}
	r.read(transcripts)
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
	for transcript := range r.unknown {
		r.introduceOne(transcript)
	}
}

func (r *reading) introduceOne(transcript string) {
	if a, ok := r.unknown[transcript]; ok && r.to.Member(a.AgentType) {
		delete(r.unknown, transcript)
		r.introduced[transcript] = true
		r.to.Introduce(transcript, "", a.AgentType)
	}
}
