package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"iter"
	"strings"

	"cadre/internal/engine"
	"cadre/internal/git/checkpoint"
	"cadre/internal/inspect/history"
	"cadre/internal/sys/atomicfile"
	"cadre/internal/team"
)

// Bounds of an exported file.
const (
	mostDiffs = 300     // tasks whose changes it has
	diffBytes = 8 << 20 // of all changes together, before they are compressed
)

// still is a team in a file, with its whole history.
type still struct {
	Ref      string            `json:"ref"`
	Version  string            `json:"version"` // of the program that wrote the file
	Patches  []json.RawMessage `json:"patches"` // what each record changed
	Lanes    json.RawMessage   `json:"lanes"`   // see [stillLanes]
	Log      []line            `json:"log"`
	Marks    []point           `json:"marks"`
	Messages []json.RawMessage `json:"messages"`
	Plans    []json.RawMessage `json:"plans"`
	Notes    map[string]part   `json:"notes"` // the changes of each note
	Tasks    map[string]part   `json:"tasks"` // what happened to each task
	Diffs    map[string]diff   `json:"diffs"`
}

// diff is what was changed for a task, as the API has it.
type diff struct {
	Patch string   `json:"patch"`
	Left  []string `json:"leftOut,omitempty"`
}

// Export writes the team to the file at path, which shows the board without a server: any moment of
// the history, and nothing to change. Likely secrets are replaced, as in checkpoints. It returns
// the number of tasks whose changes have no room in the file.
func Export(ctx context.Context, path string, t *engine.Team, version string) (
	left int, err error) {
	var file bytes.Buffer
	if left, err = export(ctx, &file, t, version); err != nil {
		return 0, err
	}
	return left, atomicfile.Write(path, file.Bytes())
}

func export(ctx context.Context, w io.Writer, t *engine.Team, version string) (
	left int, err error) {
	is := still{Ref: t.Name, Version: version, Patches: []json.RawMessage{}, Marks: []point{},
		Messages: []json.RawMessage{}, Plans: []json.RawMessage{}, Notes: map[string]part{}, Tasks: map[string]part{},
		Diffs: map[string]diff{}}
	s, k, past, lanes := empty(), newTracker(), recalled{}, newStillLanes()
	k.clean = checkpoint.RedactJSON
	var records []*team.Record
	for r, err := range t.Records(ctx, 0) {
		var lost *engine.LostError
		if errors.As(err, &lost) {
			return 0, fmt.Errorf("team %s cannot be exported: %w", t.Name, err)
		}
		if err != nil {
			return 0, err
		}
		s.Apply(r)
		past.add(r)
		lanes.add(&past)
		records = append(records, r)
		is.Patches = append(is.Patches, encoded(k.update(s, r)))
	}
	lanes.end(&past)
	is.Lanes = k.encode(lanes)
	if err := is.told(records, s, k, &past); err != nil {
		return 0, err
	}
	if left, err = is.changes(ctx, t, s); err != nil {
		return 0, err
	}
	return left, is.write(w, s.Team().Name)
}

// told adds what was said and decided: the history in words, messages, plans, and what happened to
// the tasks.
func (is *still) told(records []*team.Record, s *team.State, k *tracker, past *recalled) error {
	is.Log = linesOf(records, s)
	for i := range is.Log {
		is.Log[i].Text = redacted(is.Log[i].Text)
	}
	for _, m := range past.marks.All() {
		is.Marks = append(is.Marks, pointOf(m))
	}
	messages, err := history.Messages(each(records))
	if err != nil {
		return err
	}
	for _, l := range messages {
		is.Messages = append(is.Messages, k.encode(l))
	}
	plans, err := history.Plans(each(records))
	if err != nil {
		return err
	}
	for _, p := range plans {
		is.Plans = append(is.Plans, k.encode(p))
	}
	notes, err := history.AllNoteChanges(each(records))
	if err != nil {
		return err
	}
	for key, changes := range notes {
		is.Notes[key] = k.encode(changes)
	}
	for t := range s.Tasks() {
		if a := accountOf(&past.tasks, t.ID); len(a.Attempts) > 0 || len(a.Mentions) > 0 {
			is.Tasks[t.ID] = k.encode(a)
		}
	}
	return nil
}

// redacted returns the text with likely secrets replaced.
func redacted(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		return ""
	}
	if json.Unmarshal(checkpoint.RedactJSON(data), &text) != nil {
		return ""
	}
	return text
}

func each(records []*team.Record) iter.Seq2[*team.Record, error] {
	return func(yield func(*team.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// changes adds what was changed for each task, as far as there is room.
func (is *still) changes(ctx context.Context, t *engine.Team, s *team.State) (left int, err error) {
	size := 0
	for task := range s.Tasks() {
		if task.Work == nil && task.Saved == nil {
			continue
		}
		if len(is.Diffs) == mostDiffs || size > diffBytes {
			left++
			continue
		}
		c, err := t.Changes(ctx, task.ID)
		if ctx.Err() != nil {
			return left, context.Cause(ctx)
		}
		if err != nil { // its commits are no longer in the repository
			continue
		}
		size += len(c.Patch)
		is.Diffs[task.ID] = diff{c.Patch, c.Left}
	}
	return left, nil
}

// write writes the page with the data in it. Its policy allows its own script and style, by their
// sums, and nothing else.
func (is *still) write(w io.Writer, name string) error {
	script, err := bundle("app.js")
	if err != nil {
		return err
	}
	if strings.Contains(strings.ToLower(script), "</script") {
		return errors.New("a module has the end of a script in it")
	}
	style, err := fs.ReadFile(page, "page/board.css")
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	to := base64.NewEncoder(base64.StdEncoding, &packed)
	z := gzip.NewWriter(to)
	if err := errors.Join(json.NewEncoder(z).Encode(is), z.Close(), to.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; script-src '%s'; style-src '%s'; base-uri 'none'; form-action 'none'">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>%s · cadre</title>
<style>%s</style>
</head>
<body>
<div id="board"></div>
<noscript>This file shows a team of coding agents. It needs JavaScript.</noscript>
<script type="application/json" id="data">%s</script>
<script type="module">%s</script>
</body>
</html>
`, sumOf(script), sumOf(string(style)), html.EscapeString(name), style, packed.Bytes(), script)
	return err
}

// sumOf returns the sum of a script or style, as policies name it.
func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
