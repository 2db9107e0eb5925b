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

// Transcripts is a feed of all transcripts below a folder, present and future. Claude Code writes
// one for each session, and one for each teammate and subagent within it. Beside some there is a
// file that says whose they are. New lines of several transcripts are delivered in the order of
// their times.
type Transcripts struct {
	Dir    string // a project's folder, or one with a subfolder projects, such as Claude Code's own
	Follow bool   // continue with later lines
}

const (
	transcriptSuffix = ".jsonl"
	aboutSuffix      = ".meta.json"
)

// about is the file beside a transcript that says whose it is. Each version has its own format.
type about struct {
	Name      string `json:"name"`
	TaskKind  string `json:"taskKind"`
	TeamName  string `json:"teamName"`
	AgentType string `json:"agentType"` // in an older version, a teammate's name or a subagent's kind
}

// Run implements [Feed].
func (f *Transcripts) Run(ctx context.Context, to Listener) error {
	root := f.Dir
	if projects := filepath.Join(f.Dir, "projects"); isFolder(projects) {
		root = projects
	}
	switch _, err := os.Stat(root); {
	case err == nil && !isFolder(root):
		return &team.Error{Code: team.Invalid,
			Text: f.Dir + " is not a directory; observe a single transcript as a file"}
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

// reading is the state of a run of [Transcripts].
type reading struct {
	to         Listener
	folders    *fswatch.Folders
	follow     bool
	tails      map[string]*tail // by path
	unknown    map[string]about // about files of transcripts whose member is not in the team yet
	introduced map[string]bool
	buffer     []byte
}

// look reads everything below a folder: first the about files, then the transcripts.
func (r *reading) look(folder string) { r.read(r.found(folder)) }

// found reads the about files below a folder, and returns the transcripts.
func (r *reading) found(folder string) (transcripts []string) {
	_ = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil: // it was removed
		case e.IsDir():
			if r.follow {
				r.folders.Add(path) // before listing it, so that later files wake
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

// changed reads the changed files.
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

// maxAbout is the size limit of an about file, in bytes.
const maxAbout = 1 << 20

// about reads an about file.
func (r *reading) about(path string) {
	transcript := strings.TrimSuffix(path, aboutSuffix) + transcriptSuffix
	if r.introduced[transcript] {
		return
	}
	data, err := regularfile.Read(path, maxAbout)
	var a about
	if err != nil || json.Unmarshal(data, &a) != nil { // still being written, and reported again
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

// introduce introduces the transcripts whose members have joined the team meanwhile.
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
