package tools

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cadre/internal/team"
)

func (c *call) teamStatus(in *look) (string, error) {
	var b strings.Builder
	words, err := c.await(in.Wait)
	if err != nil {
		return "", err
	}
	b.WriteString(words)
	c.view(func(s *team.State) {
		t := s.Team()
		fmt.Fprintf(&b, "Team %s [%s], led by %s. You are %s.\n", t.Name, t.Status, t.Lead, c.me)
		if t.LeadLost != 0 {
			fmt.Fprintf(&b, "No session has led it for %s: finish your present task, and start no other.\n",
				c.since(t.LeadLost))
		}
		if t.Delegate {
			b.WriteString("Delegate mode: the lead coordinates and leaves the work to teammates.\n")
		}
		if strings.TrimSpace(t.Goal) != "" {
			fmt.Fprintf(&b, "Goal:\n%s\n", block(t.Goal))
		}
		b.WriteString("Members:\n")
		for _, m := range s.Members() {
			fmt.Fprintf(&b, "- %s%s\n", roster(s, m), c.life(m))
		}
		fmt.Fprintf(&b, "Tasks: %s\n", counts(s))
		fmt.Fprintf(&b, "Budget: %s\n", c.budget(t))
		c.requests(&b, s)
	})
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// await waits for news for the caller, if the input asks for it, and returns what came of that; ""
// if there is news, because it follows the result.
func (c *call) await(wanted seconds) (words string, err error) {
	switch {
	case wanted.d == nil || *wanted.d == 0:
		return "", nil
	case c.o.Wait == nil:
		return "There is no need to wait: end your turn, and you are woken when there is news.\n", nil
	}
	long := min(*wanted.d, MaxWait)
	if c.o.LongestWait != nil {
		long = min(long, c.o.LongestWait())
	}
	waiting, cancel := context.WithTimeout(c.ctx, long)
	defer cancel()
	for {
		var seq int64
		var news, expected bool
		c.view(func(s *team.State) { seq, news, expected = s.Seq(), s.Wakes(c.me), s.Expects(c.me) })
		switch {
		case news:
			return "", nil
		case !expected:
			return "You did not wait: no other member is working, so no news will come.\n", nil
		}
		if err := c.o.Wait(waiting, seq); err != nil {
			switch {
			case c.ctx.Err() != nil:
				return "", c.ctx.Err()
			case waiting.Err() != nil:
				return fmt.Sprintf("No news in %d s. Wait again, or end your turn.\n", int64(long.Seconds())), nil
			}
			return "", err
		}
	}
}

// life returns what others have to know about a member that is offline, or does not get its mail.
func (c *call) life(m team.Member) (words string) {
	if m.Offline != 0 {
		words += "; offline for " + c.since(m.Offline)
	}
	if len(m.Late) > 0 {
		words += "; late: " + messages(m.Late)
		if c.leads {
			words += " → ResendMessages"
		}
	}
	return words
}

// since returns the time since then.
func (c *call) since(then team.Time) string {
	return team.Span(c.o.Now().Sub(then).Truncate(time.Second))
}

// roster describes a member in one line.
func roster(s *team.State, m team.Member) string {
	about := subject(m.Agent)
	if m.Role != "" && m.Name != s.Team().Lead {
		about += ", role " + subject(m.Role)
	}
	if m.Name == s.Team().Lead {
		about += ", lead"
	}
	words := fmt.Sprintf("%s [%s] (%s)", m.Name, m.Status, about)
	var at []string
	for t := range s.Tasks() {
		if t.Status == team.InProgress && t.Owner == m.Name {
			at = append(at, titled(t))
		}
	}
	if len(at) > 0 {
		words += " at " + strings.Join(at, ", ")
	}
	switch {
	case !m.Status.Running() && m.Summary != "":
		words += ": " + quoted(m.Summary)
	case m.Shutdown.Request != "" && m.Shutdown.Answer == "":
		words += "; asked to shut down"
	case m.Shutdown.Answer == "rejected":
		words += "; refused to shut down"
	}
	if m.Status.Running() && m.Plan.Required && m.Plan.State != "approved" {
		words += "; changes nothing before its plan is approved"
	}
	return words
}

func counts(s *team.State) string {
	blocked, outOfRetries := 0, 0
	for t := range s.Tasks() {
		switch {
		case t.OutOfRetries():
			outOfRetries++
		case t.Status == team.Pending && len(t.Blocked()) > 0:
			blocked++
		}
	}
	words := fmt.Sprintf("%d pending", s.Count(team.Pending))
	var of []string
	if blocked > 0 {
		of = append(of, fmt.Sprintf("%d blocked", blocked))
	}
	if outOfRetries > 0 {
		of = append(of, fmt.Sprintf("%d out of retries", outOfRetries))
	}
	if len(of) > 0 {
		words += " (" + strings.Join(of, ", ") + ")"
	}
	return words + fmt.Sprintf(", %d in progress, %d completed", s.Count(team.InProgress), s.Count(team.Completed))
}

// budget describes the usage and its limits.
func (c *call) budget(t team.Team) string {
	of := func(used, limit string, limited bool) string {
		if limited {
			return used + " of " + limit
		}
		return used
	}
	minutes := func(d time.Duration) string { return count(int(d.Minutes()), "minute", "minutes") }
	words := []string{of(fmt.Sprint(t.Usage.Tokens()), fmt.Sprint(t.Budget.Tokens), t.Budget.Tokens > 0) + " tokens"}
	if t.Usage.CostMicroUSD > 0 || t.Budget.CostMicroUSD > 0 {
		words = append(words, of(team.Dollars(t.Usage.CostMicroUSD), team.Dollars(t.Budget.CostMicroUSD),
			t.Budget.CostMicroUSD > 0))
	}
	if t.Budget.Time > 0 {
		words = append(words, of(minutes(c.o.Now().Sub(t.CreatedAt)), minutes(t.Budget.Time), true))
	}
	if t.Exhausted != "" {
		return strings.Join(words, ", ") + "; spent: " + t.Exhausted + ", so nothing more is started"
	}
	return strings.Join(words, ", ")
}

// requests lists the open requests, and how to answer them.
func (c *call) requests(b *strings.Builder, s *team.State) {
	var lines []string
	how := func(tool string) string {
		if c.leads {
			return " → " + tool
		}
		return ""
	}
	for _, m := range s.Members() {
		if m.Status.Running() && m.Plan.State == "submitted" {
			lines = append(lines, fmt.Sprintf("- %s: a plan of %s%s", m.Plan.Request, m.Name, how("RespondToPlan")))
			if c.leads {
				lines = append(lines, block(block(m.Plan.Text)))
			}
		}
	}
	for _, p := range s.Permissions() {
		answer := how("RespondToPermission")
		if p.Member == c.me {
			answer = " → the user answers"
		}
		lines = append(lines, fmt.Sprintf("- %s: %s wants to use %s %s, %s left%s", p.Request, p.Member,
			subject(p.Tool), quoted(p.Input), c.span(p.Deadline), answer))
	}
	if m, ok := s.Member(c.me); ok && m.Shutdown.Request != "" && m.Shutdown.Answer == "" {
		lines = append(lines, fmt.Sprintf("- %s: you are asked to shut down, %s left → RespondToShutdown",
			m.Shutdown.Request, c.span(m.Shutdown.Deadline)))
	}
	if len(lines) > 0 {
		b.WriteString("Requests that wait for an answer:\n" + strings.Join(lines, "\n") + "\n")
	}
}

func (c *call) cleanupTeam(in *cleanup) (string, error) {
	if c.o.Cleanup == nil {
		return c.leaveToOthers(in.Force.on)
	}
	if _, err := c.do(&team.CleanUp{Force: in.Force.on}); err != nil {
		return "", err
	}
	c.over = true
	if err := c.o.Cleanup(c.ctx); err != nil {
		return "", mistake("The team is ended, but not all of it could be removed: %s\nMake the same call again to "+
			"try once more.", line(err.Error(), mostOfAnError))
	}
	return "The team is removed. Tell the user what came of its work, and end your turn.", nil
}

// leaveToOthers prepares a team for its removal by others.
func (c *call) leaveToOthers(force bool) (string, error) {
	var running []string
	c.view(func(s *team.State) {
		for _, m := range s.Members() {
			if m.Name != c.me && m.Status.Running() {
				running = append(running, m.Name)
			}
		}
	})
	if len(running) > 0 && !force {
		return "", mistake("%s still on the team: %s. Shut them down first with ShutdownTeammate, or end your turn: "+
			"when nothing is left to do you are asked for the report, and cadre ends the team after it.",
			isOrAre(len(running)), strings.Join(running, ", "))
	}
	for _, name := range running {
		if _, err := c.do(&team.RequestShutdown{Member: name, Reason: "The team is being removed.",
			Deadline: c.o.Now()}); err != nil && team.CodeOf(err) != team.Conflict &&
			team.CodeOf(err) != team.Finished {
			return "", err
		}
	}
	return "The team is removed once you have reported. End your turn with what came of its work.", nil
}

func isOrAre(n int) string {
	if n == 1 {
		return "One is"
	}
	return fmt.Sprintf("%d are", n)
}
