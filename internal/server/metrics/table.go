package metrics

import "cadre/internal/team"

// kind is the type of a metric, in the words of the text format.
type kind string

const (
	gauge   kind = "gauge"
	counter kind = "counter"
	timing  kind = "histogram"
)

// metric is a row of the table of metrics. The text and docs/monitoring.md are made from it.
type metric struct {
	name    string
	kind    kind
	unit    string // of its value
	label   string // its labels, with commas
	help    string // one sentence or more, without a line break
	samples func(*page, *figures)
}

// table lists all metrics, in the order of the text. A name and the meaning of its labels are for
// ever: people have dashboards and alerts with them.
var table = []metric{
	{"cadre_members", gauge, "members", "state",
		"Members of all teams by state, leads included. The states are those of a team's status.",
		func(p *page, f *figures) {
			for _, state := range phases {
				p.count("", f.members[state], "state", string(state))
			}
		}},
	{"cadre_tasks", gauge, "tasks", "state",
		"Tasks by state. Pending ones can be claimed, blocked ones wait for others, failed ones are out of retries.",
		func(p *page, f *figures) {
			for i, state := range taskStates {
				p.count("", f.tasks[i], "state", state)
			}
		}},
	{"cadre_task_duration_seconds", timing, "seconds", "",
		"Time from the claim of a task to its completion. Failed and released attempts do not count.",
		func(p *page, f *figures) { p.histogram(taskBounds, &f.sums.taskTime) }},
	{"cadre_task_wait_seconds", timing, "seconds", "",
		"Time from when a task can be claimed to its claim. A task that failed or was released waits again.",
		func(p *page, f *figures) { p.histogram(waitBounds, &f.sums.taskWait) }},
	{"cadre_claim_conflicts_total", counter, "claims", "",
		"Claims that were refused because another member has the task, since the server started.",
		func(p *page, f *figures) { p.count("", f.conflicts) }},
	{"cadre_messages_total", counter, "messages", "",
		"Messages that were sent. A broadcast is one message.",
		func(p *page, f *figures) { p.count("", f.sums.messages) }},
	{"cadre_message_delivery_seconds", timing, "seconds", "",
		"Time from the sending of a message to its delivery, for each recipient.",
		func(p *page, f *figures) { p.histogram(deliveryBounds, &f.sums.deliveryTime) }},
	{"cadre_attention", gauge, "items", "kind",
		"Items that wait for a person, in the one list of attention. Those that an agent handles do not count.",
		func(p *page, f *figures) {
			for _, k := range team.ItemKinds {
				p.count("", int64(f.attention[k].items), "kind", string(k))
			}
		}},
	{"cadre_attention_oldest_seconds", gauge, "seconds", "kind",
		"Age of the oldest of these items. Without one of known age, a kind has no series.",
		func(p *page, f *figures) {
			for _, k := range team.ItemKinds {
				if since := f.attention[k].since; since > 0 {
					p.number("", max(0, f.now.Sub(since).Seconds()), "kind", string(k))
				}
			}
		}},
	{"cadre_rate_limited_pools", gauge, "pools", "",
		"Rate limits for which members wait. A pool is an agent, an endpoint, a source of credentials and a model.",
		func(p *page, f *figures) { p.count("", f.rateLimited) }},
	{"cadre_permission_wait_seconds", timing, "seconds", "",
		"Time from a permission request to its answer or deadline. Answers by a rule do not count.",
		func(p *page, f *figures) { p.histogram(permissionBounds, &f.sums.permissionWait) }},
	{"cadre_tokens_total", counter, "tokens", "kind, model",
		"Tokens that models used, by the figures of the agents.",
		func(p *page, f *figures) {
			for _, m := range f.models {
				p.count("", m.usage.InputTokens, "kind", "input", "model", m.model)
				p.count("", m.usage.OutputTokens, "kind", "output", "model", m.model)
				p.count("", m.usage.CacheReadTokens, "kind", "cache_read", "model", m.model)
				p.count("", m.usage.CacheWriteTokens, "kind", "cache_write", "model", m.model)
			}
		}},
	{"cadre_cost_usd_total", counter, "US dollars", "",
		"Cost of models, by the figures of the agents. Some agents report no cost.",
		func(p *page, f *figures) { p.number("", float64(f.cost)/1e6) }},
	{"cadre_budget_used_ratio", gauge, "ratio", "what",
		"Largest used share of any budget of a running team or member. No budget, no series.",
		func(p *page, f *figures) {
			for _, what := range budgets {
				if share, ok := f.budgets[what]; ok {
					p.number("", share, "what", what)
				}
			}
		}},
	{"cadre_journal_append_seconds", timing, "seconds", "",
		"Time until a write of the server to a journal was durable, since the server started.",
		func(p *page, f *figures) { p.histogram(appendBounds, &f.appends) }},
	{"cadre_journal_bytes", gauge, "bytes", "",
		"Size of all journals on disk.",
		func(p *page, f *figures) { p.count("", f.journalBytes) }},
	{"cadre_notes", gauge, "notes", "",
		"Notes of all teams.",
		func(p *page, f *figures) { p.count("", f.notes) }},
	{"cadre_notes_bytes", gauge, "bytes", "",
		"Size of the texts of these notes.",
		func(p *page, f *figures) { p.count("", f.notesBytes) }},
	{"cadre_stream_lag_records", gauge, "records", "",
		"Records that the slowest reader of a stream of events has still to read; 0 without readers.",
		func(p *page, f *figures) { p.count("", f.streamLag) }},
}

// phases are the states of members, in the order of the text.
var phases = []team.Phase{team.Phase(team.Spawning), team.Phase(team.Active), team.Phase(team.Idle),
	team.Phase(team.Blocked), team.Phase(team.ShuttingDown), team.Phase(team.Stopped), team.Phase(team.Failed),
	team.Zombie, team.Paused, team.Away}

// taskStates are the states of tasks, as people see them.
var taskStates = [...]string{"pending", "blocked", "in_progress", "completed", "failed"}

// budgets are what a budget can limit.
var budgets = []string{"tokens", "cost", "time"}

// figures are the values at the time of a scrape.
type figures struct {
	sums      sums
	models    []modelUsage
	cost      int64 // millionths of a US dollar
	conflicts int64
	appends   histogram

	now                     team.Time
	members                 map[team.Phase]int64
	tasks                   [len(taskStates)]int64
	attention               map[team.ItemKind]waiting
	budgets                 map[string]float64
	journalBytes, streamLag int64
	notes, notesBytes       int64
	rateLimited             int64
}

// waiting is what waits of one kind.
type waiting struct {
	items int
	since team.Time // the oldest; 0 if unknown
}

func (c *Collector) figures(g Gauges) *figures {
	f := &figures{now: g.Now, members: map[team.Phase]int64{}, attention: map[team.ItemKind]waiting{},
		budgets: map[string]float64{}, journalBytes: g.JournalBytes, streamLag: g.StreamLag}
	for _, i := range g.Attention {
		if i.WaitsFor != team.ForUser {
			continue
		}
		w := f.attention[i.Kind]
		if w.items++; i.Since > 0 && (w.since == 0 || i.Since < w.since) {
			w.since = i.Since
		}
		f.attention[i.Kind] = w
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f.conflicts = c.conflicts
	f.appends.merge(&c.appends)
	f.models = byModel(c.teams)
	for _, m := range f.models {
		f.cost += m.usage.CostMicroUSD
	}
	var members []team.Member
	for id, h := range c.teams {
		f.sums.merge(&h.sums)
		if h.running != nil {
			members = f.stand(h.state, g.Outside[id], members[:0])
		}
	}
	return f
}

// stand adds how a team stands now. It returns the buffer of members for the next team.
func (f *figures) stand(s *team.State, o *team.Outside, buffer []team.Member) []team.Member {
	if !s.Exists() {
		return buffer
	}
	of := s.Team()
	over := of.Status == team.TeamComplete || of.Status == team.TeamAborted
	buffer = s.AppendMembers(buffer)
	for i := range buffer {
		m := &buffer[i]
		f.members[s.Standing(m.Name, o)]++
		if !over && m.Status.Running() {
			f.spend(m.Spending(f.now))
		}
	}
	if !over {
		f.spend(s.Spending(f.now))
	}
	f.rateLimited += int64(len(s.RateLimits()))
	ready, _ := s.Ready(0)
	pending, blocked := s.Count(team.Pending), s.Blocked()
	for i, n := range [len(taskStates)]int{ready, blocked, s.Count(team.InProgress), s.Count(team.Completed),
		pending - blocked - ready} {
		f.tasks[i] += int64(n)
	}
	notes, size := s.NotesHeld()
	f.notes += int64(notes)
	f.notesBytes += int64(size)
	return buffer
}

func (f *figures) spend(all []team.Spent) {
	for _, one := range all {
		f.budgets[one.What] = max(f.budgets[one.What], float64(one.Used)/float64(one.Limit))
	}
}
