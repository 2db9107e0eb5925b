package e2e

import (
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"cadre/internal/agent/agenttest"
)

// TestBudgets checks that a spent budget, in any unit, stops the team in the middle of its work.
// The run says so, and how to continue. It leaves no process. The same command continues with a new
// budget.
func TestBudgets(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ agent, budget, words, more string }{
		"tokens": {"claude", "tokens: 1500",
			`token budget of the team is spent \(used \d{4} tokens, the limit is 1500 tokens\); with a larger budget, the same command continues where this one stopped\. To raise the budget: cadre budget spent --tokens N`,
			"--tokens=1000000"},
		"tokens of codex": {"codex", "tokens: 1500",
			`token budget of the team is spent \(used \d{4} tokens, the limit is 1500 tokens\); with a larger budget, the same command continues where this one stopped\. To raise the budget: cadre budget spent --tokens N`,
			"--tokens=1000000"},
		"money": {"claude", "usd: 0.002",
			`cost budget of the team is spent \(used \$0.00\d\d, the limit is \$0.0020\); with a larger budget, the same command continues where this one stopped\. To raise the budget: cadre budget spent --usd AMOUNT`, "--usd=100"},
		"money, opencode": {"opencode", "usd: 0.002",
			`cost budget of the team is spent \(used \$0.00\d\d, the limit is \$0.0020\); with a larger budget, the same command continues where this one stopped\. To raise the budget: cadre budget spent --usd AMOUNT`, "--usd=100"},
		"time": {"claude", "time: 5s",
			`time budget of the team is spent \(.* 5 s\); with a larger budget, the same command continues where this one stopped\. To raise the budget: cadre budget spent --time DURATION`, "--time=1h"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var raised atomic.Bool
			s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				switch id, _ := task(r); {
				case id == "":
					return agenttest.Say("I have no task yet.")
				// the time may be spent before the first turn began: then there is nothing to
				// continue
				case r.Has("Continue where you stopped"), name == "time" && raised.Load():
					return complete(r)
				case name == "time":
					return shells[c.agent]("touch began; sleep 1000")
				case strings.HasPrefix(name, "money"): // the agent reports its cost at the end of a turn
					return agenttest.Turn{Text: "Not yet.", In: 1000}
				}
				return shells[c.agent]("true") // repeat in one turn
			}, c.agent)
			file := s.file("name: spent\nbudget: {" + c.budget + "}\npermissions: {mode: " +
				"bypassPermissions}\nmembers: [{name: ann, agent: " + c.agent + "}]\ntasks: [{id: one}]\n")
			for range 2 { // a second run without a new budget prints the same
				r := s.run(file)
				s.ended(r, 1)
				if left := s.processes(); len(left) > 0 {
					t.Errorf("processes left: %v", left)
				}
				if !regexp.MustCompile("not finished: the " + c.words).MatchString(r.err) {
					t.Errorf("the run prints %s", r.err)
				}
			}
			if status := s.must("status", "spent"); !strings.Contains(status, ", spent)") {
				t.Errorf("its status is\n%s", status)
			}
			s.must("budget", "spent", c.more)
			raised.Store(true)
			s.ended(s.run(file), 0)
			if c.agent == "opencode" { // it reports the total cost of its session, also after a resume
				cost := 0
				for _, r := range s.model.Requests() {
					if id, _ := task(r); id == "" || r.Has("Continue where you stopped") {
						cost += 100*5 + 10*25
					} else {
						cost += 1000*5 + 10*25
					}
				}
				if counted := read[struct{ Usage struct{ CostMicroUSD int } }](s.world, "status",
					"spent").Usage.CostMicroUSD; counted != cost {
					t.Errorf("counted %d millionths of a dollar, want %d\n%s", counted, cost, s.model.Story())
				}
			}
		})
	}
}

// TestCosts checks the report of costs. A budget of money does not bound an agent that reports no
// costs, and the run says so.
//
// The status shows the usage of each member and each task in tokens. It also shows money if the
// agent reports it. The turn in which a member is asked to shut down belongs to no task.
func TestCosts(t *testing.T) {
	t.Parallel()
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		turn := complete(r)
		turn.In, turn.Out = 1000, 100
		if id, calls := task(r); id == "one" && called(calls, "TaskUpdate") == 0 {
			turn.CacheRead, turn.CacheWrite = 600, 200
		}
		return turn
	}, "claude", "codex")
	file := s.file("name: costs\nbudget: {usd: 100}\npermissions: {mode: bypassPermissions}\nmembers: [{name: ann, " +
		"agent: claude, role: a}, {name: bob, agent: codex, role: b}]\ntasks: [{id: one, role: a}, {id: two, role: " +
		"b}, {id: three, role: a, blockedBy: [one]}]\n")
	r := s.run(file)
	s.ended(r, 0)
	if n := strings.Count(r.err,
		"codex does not say what the model costs, so the budget in USD does not count it"); n != 1 {
		t.Errorf("the run says %d times what the budget does not bound:\n%s", n, r.err)
	}
	status := s.must("status", "costs")
	for _, line := range []string{`costs is complete.*`, `in \S+, last change .*, 8800 tokens, \$0\.\d{4}`,
		`ann +claude +a +stopped .*5500 +\$0\.\d{4} .*`, `bob +codex +b +stopped .*3300 .*`,
		`TASK +STATUS +OWNER +TOKENS +COST +SUBJECT`, `one +completed +ann +2200 +\$0\.\d{4} +one`,
		`two +completed +bob +2200 +two`, `three +completed +ann +2200 +\$0\.\d{4} +three`} {
		if !regexp.MustCompile(`(?m)^` + line + `$`).MatchString(status) {
			t.Errorf("the status lacks the line %q:\n%s", line, status)
		}
	}
	type usage struct{ InputTokens, OutputTokens, CacheReadTokens, CacheWriteTokens, CostMicroUSD int64 }
	all := read[struct {
		Usage   usage
		Members []struct {
			Name  string
			Usage usage
		}
		TaskUsage map[string]usage
	}](s.world, "status", "costs")
	cost := all.TaskUsage["1"].CostMicroUSD + all.TaskUsage["3"].CostMicroUSD
	if all.TaskUsage["1"] != (usage{1200, 200, 600, 200, all.TaskUsage["1"].CostMicroUSD}) ||
		all.TaskUsage["2"] != (usage{2000, 200, 0, 0, 0}) || cost == 0 || cost >= all.Usage.CostMicroUSD {
		t.Errorf("got the usage %+v, want each task to have its own", all)
	}
}
