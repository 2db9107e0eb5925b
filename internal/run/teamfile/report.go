package teamfile

import (
	"path/filepath"
)

// report reads the report of the team.
func (p *parser) report(root *mapping) Report {
	n := root.values["report"]
	if n == nil {
		return Report{}
	}
	m := p.mapping(n, "report", "file", "title", "sections")
	if m == nil {
		return Report{}
	}
	r := Report{File: m.line("file"), Title: m.line("title")}
	// The team file may come from another author. Its report stays in the directory that its user
	// chose.
	if r.File != "" && !filepath.IsLocal(r.File) {
		p.fail(m.at("file"), "the report's file %q is outside of the team's directory; use a path below it, or "+
			"--report on the command line", shorten(r.File))
	}
	ids, state := make([]string, len(p.tasks)), map[string]string{}
	for i, t := range p.tasks {
		ids[i], state[t.ID] = t.ID, "unlisted"
	}
	sections, nodes := m.texts("sections", "task ids")
	for i, id := range sections {
		switch state[id] {
		case "":
			p.fail(nodes[i], "section %q is not the id of a task%s", shorten(id), p.didYouMean(id, ids))
		case "listed":
			p.fail(nodes[i], "section %q is listed twice; keep one of them", id)
		default:
			state[id] = "listed"
			r.Sections = append(r.Sections, id)
		}
	}
	return r
}
