package store

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/claude/teamfiles/teamfilestest"
	"cadre/internal/observe/source"
	"cadre/internal/team"
)

// shown returns the team according to its files, read only with encoding/json; "" while a file is
// half written or being replaced. It leaves out members that approved their shutdown, because they
// stay on the roster for a while. It has a teammate's activity only if the roster has it.
func shown(claude string, approved map[string]bool) string {
	var b strings.Builder
	configs, _ := filepath.Glob(filepath.Join(claude, "teams/*/config.json"))
	if len(configs) != 1 {
		return ""
	}
	var config struct {
		Name    string
		Members []struct {
			Name, AgentID string
			IsActive      *bool
		}
	}
	data, _ := os.ReadFile(configs[0])
	if json.Unmarshal(data, &config) != nil {
		return ""
	}
	var members []string
	for _, m := range config.Members {
		switch {
		case m.Name == "team-lead" || approved[m.Name]:
		case m.IsActive == nil:
			members = append(members, m.AgentID)
		default:
			members = append(members, fmt.Sprint(m.AgentID, " ", *m.IsActive))
		}
	}
	slices.Sort(members)
	fmt.Fprintln(&b, config.Name, members)
	tasks, _ := filepath.Glob(filepath.Join(claude, "tasks", config.Name, "*.json"))
	slices.Sort(tasks) // there are fewer than ten
	for _, path := range tasks {
		var task struct {
			ID, Subject, Description, ActiveForm, Status, Owner string
			BlockedBy                                           []string
			Metadata                                            map[string]any
		}
		data, _ := os.ReadFile(path)
		if json.Unmarshal(data, &task) != nil {
			return ""
		}
		if task.Metadata["_internal"] != true {
			fmt.Fprintln(&b, task.ID, task.Subject, task.Description, task.ActiveForm, task.Status, task.Owner,
				task.BlockedBy, task.Metadata)
		}
	}
	inboxes, _ := filepath.Glob(filepath.Join(claude, "teams/*/inboxes/*.json"))
	slices.Sort(inboxes)
	for _, path := range inboxes {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		if name == "nobody" { // the lead wrote to it by mistake
			continue
		}
		var entries []struct {
			From, Text string
			Read       bool
		}
		data, _ := os.ReadFile(path)
		if json.Unmarshal(data, &entries) != nil {
			return ""
		}
		for _, e := range entries {
			if !e.Read && !strings.HasPrefix(e.Text, "{") && !strings.HasPrefix(e.Text, "ROLE=") {
				fmt.Fprintln(&b, "for", name, "from", e.From, e.Text)
			}
		}
	}
	return b.String()
}

// observed returns the same for the observed team. like says which members have an activity.
func observed(o Observer, like string) string {
	var b strings.Builder
	s := o.Team()
	if s == nil || !s.Exists() {
		return "none"
	}
	var members []string
	for _, m := range s.Members() {
		doing := fmt.Sprint(m.Session, " ", m.Status == team.Active)
		switch {
		case m.Name == "team-lead" || !m.Status.Running():
		case strings.Contains(like, m.Session+" true") || strings.Contains(like, m.Session+" false"):
			members = append(members, doing)
		default:
			members = append(members, m.Session)
		}
	}
	slices.Sort(members)
	fmt.Fprintln(&b, s.Team().Observed, members)
	for task := range s.Tasks() {
		metadata := map[string]any{}
		for key, v := range task.Metadata {
			var value any
			_ = json.Unmarshal(v, &value)
			metadata[key] = value
		}
		fmt.Fprintln(&b, task.ID, task.Subject, task.Description, task.ActiveForm, task.Status, task.Owner,
			task.BlockedBy, metadata)
	}
	names := []string{"team-lead"}
	for _, m := range s.Members() {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		for _, m := range s.Inbox(name) {
			fmt.Fprintln(&b, "for", name, "from", m.From, m.Body)
		}
	}
	return b.String()
}

var approval = regexp.MustCompile(`shutdown_approved[^}]*from\\":\\"(\w+)`)

// TestFilesOfRealTeams replays the files of real teams, of both generations. After each change the
// observed team matches the files, also for an observer that begins in the middle, and for one that
// was stopped meanwhile.
func TestFilesOfRealTeams(t *testing.T) {
	for _, version := range teamfilestest.Versions {
		for _, every := range []int{0, 7} { // changes until the observer is stopped and continues later
			t.Run(fmt.Sprint(version, " away every ", every), func(t *testing.T) {
				claude, name, compared := t.TempDir(), "", 0
				var saved []byte
				var r *running
				approved, away := map[string]bool{}, false
				begin := func() {
					r = run(t, &Watch{Saved: saved, Now: func() team.Time { return team.Time(time.Now().UnixMilli()) }},
						&source.ClaudeTeam{Claude: claude, Name: name, Follow: true})
				}
				for n, c := range teamfilestest.Recording(t, version) {
					c.Play(t, claude)
					if name == "" {
						if name = c.Roster(); name == "" {
							continue
						}
						begin()
					}
					if c.Ends() {
						break
					}
					for _, answer := range approval.FindAllStringSubmatch(c.Content, -1) {
						approved[answer[1]] = true
					}
					want := shown(claude, approved)
					if want == "" || strings.Contains(c.Path, ".lock") || every > 0 && n%every > 2 {
						continue
					}
					if away {
						begin()
						away = false
					}
					compared++
					r.until(fmt.Sprintf("after change %d, %s, the files show\n%s", n, c.Path, want),
						func(o Observer) bool { return observed(o, want) == want })
					if every > 0 && n%every == 2 {
						away = true
						r.end()
						r.View(func(o Observer) { saved, _ = o.Save() })
					}
				}
				if away {
					begin()
				}
				r.until("the team is over", func(o Observer) bool { return observed(o, "") == "none" })
				if every == 0 {
					r.finish() // it ends by itself
				}
				if compared < 20 {
					t.Errorf("only %d points were compared", compared)
				}
			})
		}
	}
}
