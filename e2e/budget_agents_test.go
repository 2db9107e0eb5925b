package e2e

import (
	"regexp"
	"strings"
	"testing"

	"cadre/internal/agent/agenttest"
)

// A budget that is spent, in whichever unit, stops the team in the middle of what it does: the run
// says so and how to go on, and nothing is left running. With a new budget the same command goes
// on.
func TestBudgets(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ agent, budget, words, more string }{
		"tokens": {"claude", "tokens: 1500",
			`tokens, \d{4} of 1500; with more, the same command continues where this one stopped\. To raise the budget: cadre budget spent --tokens N`,
			"--tokens=1000000"},
		"tokens of codex": {"codex", "tokens: 1500",
			`tokens, \d{4} of 1500; with more, the same command continues where this one stopped\. To raise the budget: cadre budget spent --tokens N`,
			"--tokens=1000000"},
		"money": {"claude", "usd: 0.002",
			`cost, \$0.00\d\d of \$0.0020; with more, the same command continues where this one stopped\. To raise the budget: cadre budget spent --usd AMOUNT`, "--usd=100"},
		"money, opencode": {"opencode", "usd: 0.002",
			`cost, \$0.00\d\d of \$0.0020; with more, the same command continues where this one stopped\. To raise the budget: cadre budget spent --usd AMOUNT`, "--usd=100"},
		"time": {"claude", "time: 5s",
			`time, 5s since the team was created; with more, the same command continues where this one stopped\. To raise the budget: cadre budget spent --time SPAN`, "--time=1h"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				switch id, _ := task(r); {
				case id == "":
					return agenttest.Say("I have no task yet.")
				case r.Has("Continue where you stopped"):
					return complete(r)
				case name == "time":
					return shells[c.agent]("touch began; sleep 1000")
				case strings.HasPrefix(name, "money"): // of which the agent tells at the end of a turn
					return agenttest.Turn{Text: "Not yet.", In: 1000}
				}
				return shells[c.agent]("true") // for ever, in one turn
			}, c.agent)
			file := s.file("name: spent\nbudget: {" + c.budget + "}\npermissions: {mode: " +
				"bypassPermissions}\nmembers: [{name: ann, agent: " + c.agent + "}]\ntasks: [{id: one}]\n")
			for range 2 { // once more without a new budget, it says the same
				r := s.run(file)
				s.ended(r, 1)
				if left := s.processes(); len(left) > 0 {
					t.Errorf("left running are %v", left)
				}
				if !regexp.MustCompile("not finished: the budget is spent: " + c.words).MatchString(r.err) {
					t.Errorf("it says %s", r.err)
				}
			}
			if status := s.must("status", "spent"); !strings.Contains(status, ", spent)") {
				t.Errorf("its status is\n%s", status)
			}
			s.must("budget", "spent", c.more)
			s.ended(s.run(file), 0)
			if c.agent == "opencode" { // it says what its session cost in all, also when it is resumed
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
					t.Errorf("counted are %d millionths of a dollar, not %d\n%s", counted, cost, s.model.Story())
				}
			}
		})
	}
}

// An amount of money does not bound an agent that does not say what it costs, which the person is
// told.
//
// What was used is told for each member and each task, in tokens, and in money by the agent that
// says it. The turn in which a member is asked to go belongs to no task.
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
		t.Errorf("it says %d times what the budget does not bound:\n%s", n, r.err)
	}
	status := s.must("status", "costs")
	for _, line := range []string{`costs is complete.*`, `in \S+, last change .*, 8800 tokens, \$0\.\d{4}`,
		`ann +claude +a +stopped .*5500 +\$0\.\d{4} .*`, `bob +codex +b +stopped .*3300 .*`,
		`TASK +STATUS +OWNER +TOKENS +COST +SUBJECT`, `one +completed +ann +2200 +\$0\.\d{4} +one`,
		`two +completed +bob +2200 +two`, `three +completed +ann +2200 +\$0\.\d{4} +three`} {
		if !regexp.MustCompile(`(?m)^` + line + `$`).MatchString(status) {
			t.Errorf("its status has no line %q:\n%s", line, status)
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
		t.Errorf("%+v", all)
	}
}
