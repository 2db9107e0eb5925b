package agenttest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"cadre/internal/agent/agenttest"
)

// dialect is one of the protocols as a program speaks it: just enough to ask, and to parse the
// answer as strictly as the real programs do.
type dialect struct {
	name   string
	path   func(stream bool) string
	header string                // for the key
	ask    func(ask) object      // builds the body of a request
	whole  func([]byte) answer   // parses a body
	read   func([]event) answer  // parses a stream, as far as it goes
	words  func([]byte) string   // the message of an error
	tokens func(answer) [4]int64 // in, out, from the cache, into the cache
}

type object = map[string]any

// ask is a conversation. It is the same for all dialects.
type ask struct {
	stream, tools bool
	history       bool // with a tool call and its result, and a later message of the user
}

// answer is the parsed answer of the model.
type answer struct {
	text  string
	calls []agenttest.Call
	usage object
	over  bool // the answer is marked as complete
}

type event struct {
	name string
	data []byte
}

// send asks a server. It returns the answer and what was wrong with it. The request ends with ctx.
func (d dialect) send(ctx context.Context, s *agenttest.Server, a ask) (answer, *http.Response, error) {
	body, _ := json.Marshal(d.ask(a))
	return d.post(ctx, s, a.stream, bytes.NewReader(body))
}

func (d dialect) post(ctx context.Context, s *agenttest.Server, stream bool,
	body io.Reader) (answer, *http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+d.path(stream), body)
	if err != nil {
		return answer{}, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(d.header, map[bool]string{true: "Bearer ", false: ""}[d.header == "Authorization"]+"dummy")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case resp.StatusCode != http.StatusOK:
		return answer{text: d.words(text)}, resp, err
	case stream:
		if kind := resp.Header.Get("Content-Type"); kind != "text/event-stream" {
			return answer{}, resp, fmt.Errorf("the answer is %s", kind)
		}
		return d.read(events(text)), resp, err
	case err != nil:
		return answer{}, resp, err
	}
	return d.whole(text), resp, nil
}

func events(text []byte) (all []event) {
	var e event
	scanner := bufio.NewScanner(bytes.NewReader(text))
	for scanner.Scan() {
		switch line := scanner.Text(); {
		case strings.HasPrefix(line, "event: "):
			e.name = line[7:]
		case strings.HasPrefix(line, "data: "):
			e.data = []byte(line[6:])
		case line == "":
			all, e = append(all, e), event{}
		}
	}
	return all
}

// forEach runs a test for every dialect, streamed and not.
func forEach(t *testing.T, test func(t *testing.T, d dialect, stream bool)) {
	for _, d := range []dialect{anthropic, openai, gemini} {
		for _, stream := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/stream=%t", d.name, stream), func(t *testing.T) { test(t, d, stream) })
		}
	}
}

func number(o object, path ...string) int64 {
	for _, p := range path[:len(path)-1] {
		o, _ = o[p].(object)
	}
	n, _ := o[path[len(path)-1]].(float64)
	return int64(n)
}

func decode[T any](data []byte) (v T) {
	json.Unmarshal(data, &v)
	return v
}

var anthropic = dialect{
	name:   "anthropic",
	path:   func(bool) string { return "/v1/messages?beta=true" },
	header: "X-Api-Key",
	ask: func(a ask) object {
		messages := []object{{"role": "user", "content": "What is the sum?"}}
		if a.history {
			messages = append(messages,
				object{"role": "assistant", "content": []object{{"type": "text", "text": "I look."},
					{"type": "tool_use", "id": "c1", "name": "Sum", "input": object{"of": "40 and 2"}}}},
				object{"role": "user", "content": []object{{"type": "tool_result", "tool_use_id": "c1",
					"is_error": true, "content": []object{{"type": "text", "text": "no such sum"}}},
					{"type": "text", "text": "Go on."}}})
		}
		o := object{"model": "m-1", "stream": a.stream, "max_tokens": 10,
			"system": []object{{"type": "text", "text": "You are ann."}}, "messages": messages}
		if a.tools {
			o["tools"] = []object{{"name": "Sum", "input_schema": object{}}, {"name": "mcp__cadre__TaskList",
				"input_schema": object{}}}
		}
		return o
	},
	whole: func(body []byte) answer {
		var in struct {
			Content []struct {
				Type, Text, ID, Name string
				Input                object
			}
			StopReason string `json:"stop_reason"`
			Usage      object
		}
		json.Unmarshal(body, &in)
		a := answer{usage: in.Usage}
		for _, c := range in.Content {
			if a.text += c.Text; c.Type == "tool_use" {
				a.calls = append(a.calls, agenttest.Call{ID: c.ID, Name: c.Name, Input: c.Input})
			}
		}
		a.over = in.StopReason == map[bool]string{true: "tool_use", false: "end_turn"}[len(a.calls) > 0]
		return a
	},
	read: func(all []event) (a answer) {
		open, input := -1, ""
		for i, e := range all {
			var in struct {
				Type         string
				Index        int
				Message      struct{ Usage object }
				ContentBlock struct{ Type, ID, Name string } `json:"content_block"`
				Delta        struct {
					Type, Text  string
					PartialJSON string `json:"partial_json"`
					StopReason  string `json:"stop_reason"`
				}
				Usage object
			}
			json.Unmarshal(e.data, &in)
			switch {
			case e.name != in.Type, (i == 0) != (in.Type == "message_start"), a.over:
				return answer{}
			case in.Type == "message_start":
				a.usage = in.Message.Usage
			case in.Type == "content_block_start":
				if open, input = in.Index, ""; in.ContentBlock.Type == "tool_use" {
					a.calls = append(a.calls, agenttest.Call{ID: in.ContentBlock.ID, Name: in.ContentBlock.Name})
				}
			case in.Type == "content_block_delta" && open == in.Index:
				a.text += in.Delta.Text
				input += in.Delta.PartialJSON
			case in.Type == "content_block_stop" && open == in.Index:
				if open = -1; input != "" {
					a.calls[len(a.calls)-1].Input = decode[object]([]byte(input))
				}
			case in.Type == "message_delta" && in.Delta.StopReason == map[bool]string{true: "tool_use",
				false: "end_turn"}[len(a.calls) > 0]:
				a.usage["output_tokens"] = in.Usage["output_tokens"]
			case in.Type == "message_stop" && open == -1:
				a.over = true
			default:
				return answer{}
			}
		}
		return a
	},
	words: func(body []byte) string {
		in := decode[struct {
			Type  string
			Error struct{ Type, Message string }
		}](body)
		return in.Type + ": " + in.Error.Type + ": " + in.Error.Message
	},
	tokens: func(a answer) [4]int64 {
		read, write := number(a.usage, "cache_read_input_tokens"), number(a.usage, "cache_creation_input_tokens")
		return [4]int64{number(a.usage, "input_tokens") + read + write, number(a.usage, "output_tokens"), read, write}
	},
}

type item struct {
	Type, ID, Name, Arguments string
	CallID                    string `json:"call_id"`
	Content                   []struct{ Type, Text string }
}

type response struct {
	Status string
	Output []item
	Usage  object
}

func (r response) answer() answer {
	a := answer{usage: r.Usage, over: r.Status == "completed"}
	for _, i := range r.Output {
		for _, c := range i.Content {
			a.text += c.Text
		}
		if i.Type == "function_call" {
			a.calls = append(a.calls, agenttest.Call{ID: i.CallID, Name: i.Name,
				Input: decode[object]([]byte(i.Arguments))})
		}
	}
	return a
}

var openai = dialect{
	name:   "openai",
	path:   func(bool) string { return "/v1/responses" },
	header: "Authorization",
	ask: func(a ask) object {
		say := func(role, kind, text string) object {
			return object{"type": "message", "role": role, "content": []object{{"type": kind, "text": text}}}
		}
		input := []object{say("developer", "input_text", "Be brief."), say("user", "input_text", "What is the sum?")}
		if a.history {
			input = append(input, say("assistant", "output_text", "I look."),
				object{"type": "function_call", "call_id": "c1", "name": "Sum", "arguments": `{"of":"40 and 2"}`},
				object{"type": "function_call_output", "call_id": "c1", "output": "no such sum"},
				say("user", "input_text", "Go on."))
		}
		o := object{"model": "m-1", "stream": a.stream, "instructions": "You are ann.", "input": input}
		if a.tools {
			o["tools"] = []object{{"type": "function", "name": "Sum"}, {"type": "namespace", "name": "mcp__cadre__",
				"tools": []object{{"type": "function", "name": "TaskList"}}}}
		}
		return o
	},
	whole: func(body []byte) answer { return decode[response](body).answer() },
	read: func(all []event) (a answer) {
		var said string
		var done []item
		for i, e := range all {
			in := decode[struct {
				Type        string
				Sequence    int `json:"sequence_number"`
				OutputIndex int `json:"output_index"`
				Delta, Text string
				Item        item
				Response    response
			}](e.data)
			switch {
			case e.name != in.Type, in.Sequence != i, (i == 0) != (in.Type == "response.created"), a.over:
				return answer{}
			case in.Type == "response.output_text.delta":
				said += in.Delta
			case in.Type == "response.output_item.done":
				if done = append(done, in.Item); in.OutputIndex != len(done)-1 {
					return answer{}
				}
			case in.Type == "response.completed":
				a = in.Response.answer()
				if told := (response{Output: done}).answer(); told.text != a.text || len(told.calls) != len(a.calls) {
					return answer{}
				}
			}
		}
		a.text = said
		return a
	},
	words: func(body []byte) string {
		in := decode[struct {
			Error struct{ Code, Message string }
		}](body)
		return "error: " + in.Error.Code + ": " + in.Error.Message
	},
	tokens: func(a answer) [4]int64 {
		if number(a.usage, "total_tokens") != number(a.usage, "input_tokens")+number(a.usage, "output_tokens") {
			return [4]int64{}
		}
		return [4]int64{number(a.usage, "input_tokens"), number(a.usage, "output_tokens"),
			number(a.usage, "input_tokens_details", "cached_tokens"), number(a.usage, "input_tokens_details",
				"cache_write_tokens")}
	},
}

type candidates struct {
	Candidates []struct {
		Content struct {
			Role  string
			Parts []struct {
				Text         string
				FunctionCall *struct {
					ID, Name string
					Args     object
				}
			}
		}
		FinishReason string
	}
	UsageMetadata object
}

func (c candidates) addTo(a answer) answer {
	if len(c.Candidates) != 1 || c.Candidates[0].Content.Role != "model" || a.over {
		return answer{}
	}
	for _, p := range c.Candidates[0].Content.Parts {
		if a.text += p.Text; p.FunctionCall != nil {
			a.calls = append(a.calls, agenttest.Call{ID: p.FunctionCall.ID, Name: p.FunctionCall.Name,
				Input: p.FunctionCall.Args})
		}
	}
	a.usage, a.over = c.UsageMetadata, c.Candidates[0].FinishReason == "STOP"
	return a
}

var gemini = dialect{
	name: "gemini",
	path: func(stream bool) string {
		return "/v1beta/models/m-1:" + map[bool]string{true: "streamGenerateContent?alt=sse",
			false: "generateContent"}[stream]
	},
	header: "X-Goog-Api-Key",
	ask: func(a ask) object {
		say := func(role string, parts ...object) object { return object{"role": role, "parts": parts} }
		contents := []object{say("user", object{"text": "What is the sum?"})}
		if a.history {
			contents = append(contents, say("model", object{"text": "I look."},
				object{"functionCall": object{"id": "c1", "name": "Sum", "args": object{"of": "40 and 2"}}}),
				say("user", object{"functionResponse": object{"id": "c1", "name": "Sum",
					"response": object{"error": "no such sum"}}}, object{"text": "Go on."}))
		}
		o := object{"systemInstruction": say("user", object{"text": "You are ann."}), "contents": contents}
		if a.tools {
			o["tools"] = []object{{"functionDeclarations": []object{{"name": "Sum"}, {"name": "mcp__cadre__TaskList"}}}}
		}
		return o
	},
	whole: func(body []byte) answer { return decode[candidates](body).addTo(answer{}) },
	read: func(all []event) (a answer) {
		for _, e := range all {
			if e.name != "" {
				return answer{}
			}
			a = decode[candidates](e.data).addTo(a)
		}
		return a
	},
	words: func(body []byte) string {
		in := decode[struct {
			Error struct {
				Code            int
				Status, Message string
			}
		}](body)
		return fmt.Sprintf("%d: %s: %s", in.Error.Code, in.Error.Status, in.Error.Message)
	},
	tokens: func(a answer) [4]int64 {
		return [4]int64{number(a.usage, "promptTokenCount"), number(a.usage, "candidatesTokenCount"),
			number(a.usage, "cachedContentTokenCount"), 0}
	},
}
