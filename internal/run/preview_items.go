package run

import (
	"context"
	"slices"
	"time"

	"cadre/internal/git"
	"cadre/internal/run/teamfile"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// listPatience bounds how long a preview takes to list the files of the directory.
const listPatience = 10 * time.Second

// itemsOf fills in for which items the task of a file makes tasks, as far as its file says it.
func (p *PreviewTask) itemsOf(t teamfile.Task) {
	if t.ForEach == nil {
		return
	}
	p.ForEach = t.ForEach.Words()
	if items, known := t.ForEach.Known(); known {
		p.ItemsKnown = true
		for _, one := range items {
			p.Items = append(p.Items, team.ItemLine(one))
		}
	}
}

// findFiles fills in the items of tasks that make one for each file of a pattern, as the files are
// now. They stay unknown if the files cannot be listed.
func (p *Preview) findFiles(ctx context.Context) {
	globs := map[string]string{} // pattern by task
	for _, t := range p.File.Tasks {
		if t.ForEach != nil && t.ForEach.Glob != "" {
			globs[t.ID] = t.ForEach.Glob
		}
	}
	if len(globs) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	procs, err := proc.Open("")
	if err != nil {
		return
	}
	defer procs.Close(context.WithoutCancel(ctx))
	files, err := git.Runner{Procs: procs, Dir: p.Dir}.Files(ctx)
	if err != nil {
		return
	}
	slices.Sort(files)
	files = slices.Compact(files)
	for i := range p.Tasks {
		t := &p.Tasks[i]
		glob, is := globs[t.Name]
		if !is || t.ForEach == "" {
			continue
		}
		t.ItemsKnown = true
		for _, file := range files {
			if team.Covers(glob, file) {
				t.Items = append(t.Items, team.ItemLine(team.TextItem(file)))
			}
		}
	}
}
