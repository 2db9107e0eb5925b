package metrics

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// MostModels is how many models have a series of their own: those that were used first. The others
// together are the model "other".
const MostModels = 50

// The values of the label model that are no names of models.
const (
	otherModels  = "other"
	defaultModel = "default" // the agent chose its model, and did not name it
)

// longestModel limits the name of a model, in bytes.
const longestModel = 64

// modelUsage is what was used of a model.
type modelUsage struct {
	model string
	first team.Time // when it was first used
	usage team.Usage
}

// use adds to the usage of a model. A team keeps its first MostModels models apart, so that an
// agent that makes up names does not fill the memory.
func (s *sums) use(model string, at team.Time, u team.Usage) {
	model = modelLabel(model)
	find := func() int {
		return slices.IndexFunc(s.models, func(m modelUsage) bool { return m.model == model })
	}
	i := find()
	if i < 0 && len(s.models) >= MostModels {
		model = otherModels
		i = find()
	}
	if i < 0 {
		i = len(s.models)
		s.models = append(s.models, modelUsage{model: strings.Clone(model), first: at})
	}
	s.models[i].usage = s.models[i].usage.Plus(u)
}

// modelLabel returns the name of a model as a value of a label.
func modelLabel(name string) string {
	name = strings.TrimSpace(sanitize.Line(name))
	if len(name) > longestModel {
		name = strings.ToValidUTF8(name[:longestModel], "")
	}
	return cmp.Or(name, defaultModel)
}

// byModel adds up the models of all teams, and returns them by name.
func byModel(teams map[string]*history) []modelUsage {
	all := map[string]modelUsage{}
	add := func(m modelUsage) {
		sum, ok := all[m.model]
		if !ok {
			sum = modelUsage{model: m.model, first: m.first}
		}
		sum.first, sum.usage = min(sum.first, m.first), sum.usage.Plus(m.usage)
		all[m.model] = sum
	}
	for _, h := range teams {
		for _, m := range h.sums.models {
			add(m)
		}
	}
	named := slices.DeleteFunc(slices.Collect(maps.Values(all)),
		func(m modelUsage) bool { return m.model == otherModels })
	slices.SortFunc(named, func(a, b modelUsage) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.model, b.model))
	})
	for _, m := range named[min(len(named), MostModels):] {
		delete(all, m.model)
		m.model = otherModels
		add(m)
	}
	return slices.SortedFunc(maps.Values(all), func(a, b modelUsage) int { return cmp.Compare(a.model, b.model) })
}
