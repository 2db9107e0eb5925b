package claude

import (
	"bytes"
	"flag"
	"fmt"
	"testing"

	"cadre/internal/agent"
	"cadre/internal/agent/agenttest"
	"cadre/internal/testkit/golden"
)

var record = flag.Bool("record", false, "record the streams again, with the real programs")

// unread lists long keys of the stream that the decoder does not read.
var unread = []string{"tools", "mcp_servers", "slash_commands", "commands", "agents", "skills", "plugins", "models",
	"memory_paths", "permission_suggestions", "capabilities", "available_output_styles",
	"account", "description", "signature", "fast_mode_state", "terminal_slash_commands", "transcript_path", "prompt_id",
	"effort", "agent_id", "messaging_socket_path", "subagent_stats", "clientInfo", "output_file",
	"run_id", "task_id"}

func TestRecordings(t *testing.T) {
	t.Parallel()
	if *record {
		for _, d := range []agenttest.Driver{driver("claude"), driver("claude@2.1.197")} {
			d.Env = []string{"CLAUDE_CODE_MAX_RETRIES=2"} // of ten
			agenttest.Record(t, d, agenttest.Tee, unread, append(agenttest.Scenes(d), scenes...)...)
		}
	}
	agenttest.Replay(t, golden.File, func(string) func([]byte) []any { return new(decoder).decode })
}

// TestLoginThatRenews checks that a 401 is final for a program with a key, while an account's token
// may be renewed once.
func TestLoginThatRenews(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		source string
		kinds  []agent.ProblemKind
	}{
		{"ANTHROPIC_API_KEY", []agent.ProblemKind{agent.ProblemLogin, agent.ProblemLogin}},
		{"none", []agent.ProblemKind{agent.ProblemModel, agent.ProblemLogin}},
	} {
		d := &decoder{}
		d.decode(fmt.Appendf(nil, `{"type":"system","subtype":"init","apiKeySource":%q}`, c.source))
		for i, kind := range c.kinds {
			said := d.decode(fmt.Appendf(nil,
				`{"type":"system","subtype":"api_retry","attempt":%d,"max_retries":10,"error_status":401,"error":"authentication_failed"}`, i+1))
			if r, ok := said[len(said)-1].(agent.Retrying); !ok || r.Problem.Kind != kind {
				t.Errorf("%s: attempt %d is %+v, not %s", c.source, i+1, said, kind)
			}
		}
	}
}

// FuzzDecode checks that the decoder continues after any line. It ignores lines that it does not
// know, and still recognizes the end of a turn.
func FuzzDecode(f *testing.F) {
	agenttest.Seeds(f,
		`{"type":"assistant","message":{"content":[{"type":"tool_use","name":7,"input":{}},{"type":"text","text":"x"}],"usage":{"input_tokens":9e18}}}`,
		`{"type":"result","is_error":"yes","modelUsage":{"m":{"costUSD":1e300,"contextWindow":1}},"result":{}}`,
		`{"type":"control_request","request_id":5,"request":[]}`)
	known := map[string]bool{"stream_event": true, "control_request": true, "control_cancel_request": true,
		"control_response": true, "system": true, "assistant": true, "user": true, "result": true}
	f.Fuzz(func(t *testing.T, stream []byte) {
		d := &decoder{}
		for line := range bytes.Lines(stream) {
			var l struct{ Type string }
			agent.Parse(line, &l)
			said := d.decode(line)
			if len(said) > 0 && !known[l.Type] {
				t.Errorf("%q says %v", line, said)
			}
			agenttest.Sound(t, said)
		}
		said := d.decode([]byte(`{"type":"result","subtype":"success","result":"Done."}`))
		if end, ok := said[len(said)-1].(agent.TurnEnded); !ok || end != (agent.TurnEnded{Text: "Done."}) {
			t.Errorf("the turn ends with %+v", said)
		}
	})
}

// scenes are the scenes that only this program can play.
var scenes = []agenttest.Scene{
	{Name: "compaction", Access: agent.Access{Mode: "default", Writes: true},
		Script: func(r *agenttest.Request) agenttest.Turn {
			return agenttest.Turn{Text: "Yes.", In: 150_000, CacheRead: 120_000, CacheWrite: 20_000}
		}, Play: func(r *agenttest.Run) {
			for _, prompt := range []string{"do one", "do two", "/compact", "do three"} {
				r.Turn(prompt)
			}
		}},
	{Name: "subagent", Access: agent.Access{Mode: "bypassPermissions", Writes: true},
		Script: func(r *agenttest.Request) agenttest.Turn {
			switch {
			case r.Has("you are the helper"):
				if r.Results() == "" {
					return agenttest.Use("Bash", map[string]any{"command": "echo from the helper",
						"description": "run it"})
				}
				return agenttest.Say("I have helped.")
			case r.Calls("Agent")+r.Calls("Task") == 0:
				return agenttest.Use(r.Tool("Agent"), map[string]any{"description": "help",
					"prompt":        "you are the helper",
					"subagent_type": "general-purpose", "run_in_background": false})
			}
			return agenttest.Say("Helped.")
		}, Play: func(r *agenttest.Run) { r.Turn("get help") }},
}
