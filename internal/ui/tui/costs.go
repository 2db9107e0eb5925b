package tui

import (
	"fmt"
	"slices"
	"strings"

	"cadre/internal/render"
	"cadre/internal/team"
	"cadre/internal/ui/costs"
)

// costLines shows the use of tokens over time, in total and by member.
func (m *Model) costLines(width, height int) []string {
	if m.past == nil {
		return m.reading()
	}
	unit, what := costs.Tokens, "tokens"
	if m.past.costs.Dollars() {
		unit, what = costs.Dollars, "dollars"
	}
	rows := m.past.costs.Rows(costs.View{})
	if rows[0].Sum == (costs.Amount{}) && !m.past.costs.Any() {
		return []string{"  " + faint.on("No agent has reported what it used.")}
	}
	var names []string
	for _, row := range rows {
		names = append(names, row.Member)
	}
	names[0] = "all"
	label := labelWidth(names, width)
	const numbers = 18 // two columns of figures
	first, last := m.past.lanes.Bounds()
	if m.away() {
		last = m.team.at
	}
	edges := costs.Edges(first, last, max(1, width-label-numbers-4))
	rows = m.past.costs.Rows(costs.View{Edges: edges, Unit: unit})
	if m.away() { // a member that had used nothing by then has no row
		for i := len(rows) - 1; i > 0; i-- {
			if rows[i].Sum == (costs.Amount{}) {
				rows, names = slices.Delete(rows, i, i+1), slices.Delete(names, i, i+1)
			}
		}
	}
	out := []string{"  " + faint.on(render.Cut(fmt.Sprintf("%s up to each moment, %s to %s; members share one scale",
		what, render.Clock(first), render.Clock(last)), width-2))}
	for i, row := range rows {
		if len(out) == height-1 && i < len(rows)-1 {
			out = append(out, "  "+faint.on(fmt.Sprintf("… and %d more members", len(rows)-i)))
			break
		}
		name := render.Cut(oneLine(names[i]), label)
		look := m.memberStyle(row.Member)
		if i == 0 {
			look = strong
		}
		used := team.Usage{InputTokens: row.Sum.Tokens, CostMicroUSD: row.Sum.CostMicroUSD}
		out = append(out, "  "+look.on(name)+strings.Repeat(" ", label-drawn(name))+
			fmt.Sprintf(" %8s %8s ", tokens(used), cost(used))+live.on(row.Bars(false)))
	}
	return out
}
