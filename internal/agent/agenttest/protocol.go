package agenttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// protocol is one of the model APIs.
type protocol interface {
	read(h *http.Request, body []byte) *Request
	answer(out *stream, r *Request, t Turn)
	failure(t Turn) any
}

func protocolOf(h *http.Request) protocol {
	path := h.URL.Path
	switch {
	case h.Method != http.MethodPost:
		return nil
	case strings.HasSuffix(path, "/messages"):
		return anthropic{}
	case strings.HasSuffix(path, "/responses"):
		return openai{}
	case strings.HasSuffix(path, ":generateContent"), strings.HasSuffix(path, ":streamGenerateContent"):
		return gemini{}
	}
	return nil
}

type object = map[string]any

// texts returns the text of a content, which is a string or a list of parts with texts.
func texts(raw json.RawMessage) string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return one
	}
	var parts []struct {
		Text string `json:"text"`
	}
	json.Unmarshal(raw, &parts)
	var all []string
	for _, p := range parts {
		if p.Text != "" {
			all = append(all, p.Text)
		}
	}
	return strings.Join(all, "\n")
}

// anthropic is the Messages API.
type anthropic struct{}

func (anthropic) read(_ *http.Request, body []byte) *Request {
	var in struct {
		Model    string          `json:"model"`
		Stream   bool            `json:"stream"`
		System   json.RawMessage `json:"system"`
		Tools    []struct{ Name string }
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	json.Unmarshal(body, &in)
	r := &Request{Protocol: "anthropic", Model: in.Model, Stream: in.Stream, System: texts(in.System)}
	for _, t := range in.Tools {
		r.Tools = append(r.Tools, t.Name)
	}
	for _, m := range in.Messages {
		msg := Message{Role: m.Role, Text: texts(m.Content)}
		var blocks []struct {
			Type, ID, Name string
			Input          map[string]any
			ToolUseID      string `json:"tool_use_id"`
			IsError        bool   `json:"is_error"`
			Content        json.RawMessage
		}
		json.Unmarshal(m.Content, &blocks)
		for _, b := range blocks {
			switch b.Type {
			case "tool_use":
				msg.Calls = append(msg.Calls, Call{b.ID, b.Name, b.Input})
			case "tool_result":
				msg.Results = append(msg.Results, Result{b.ToolUseID, texts(b.Content), b.IsError})
			}
		}
		r.Messages = append(r.Messages, msg)
	}
	return r
}

func (anthropic) failure(t Turn) any {
	kind := map[int]string{400: "invalid_request_error", 401: "authentication_error", 403: "permission_error",
		429: "rate_limit_error", 529: "overloaded_error"}[t.Status]
	if kind == "" {
		kind = "api_error"
	}
	return object{"type": "error", "error": object{"type": kind, "message": t.Text}}
}

func (anthropic) answer(out *stream, r *Request, t Turn) {
	stop := "end_turn"
	var content []object
	if t.Text != "" || len(t.Calls) == 0 {
		content = append(content, object{"type": "text", "text": t.Text})
	}
	for _, c := range t.Calls {
		stop = "tool_use"
		content = append(content, object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": c.Input})
	}
	usage := func(out int) object {
		return object{"input_tokens": t.In - t.CacheRead - t.CacheWrite, "output_tokens": out,
			"cache_read_input_tokens": t.CacheRead, "cache_creation_input_tokens": t.CacheWrite}
	}
	message := object{"id": fmt.Sprintf("msg_%04d", r.N), "type": "message", "role": "assistant", "model": r.Model,
		"content": content, "stop_reason": stop, "stop_sequence": nil,
		"usage": usage(t.Out)}
	if !out.live {
		out.whole(message)
		return
	}
	out.head()
	event := func(kind string, data object) {
		data["type"] = kind
		out.event(kind, data)
	}
	message["content"], message["stop_reason"] = []object{}, nil
	message["usage"] = usage(1)
	event("message_start", object{"message": message})
	for i, block := range content {
		if block["type"] == "text" {
			event("content_block_start", object{"index": i, "content_block": object{"type": "text", "text": ""}})
			first, rest := halves(t.Text)
			event("content_block_delta", object{"index": i, "delta": object{"type": "text_delta", "text": first}})
			out.half()
			event("content_block_delta", object{"index": i, "delta": object{"type": "text_delta", "text": rest}})
		} else {
			input, _ := json.Marshal(block["input"])
			event("content_block_start", object{"index": i, "content_block": object{"type": "tool_use",
				"id": block["id"], "name": block["name"], "input": object{}}})
			event("content_block_delta", object{"index": i, "delta": object{"type": "input_json_delta",
				"partial_json": string(input)}})
		}
		event("content_block_stop", object{"index": i})
	}
	event("message_delta", object{"delta": object{"stop_reason": stop, "stop_sequence": nil},
		"usage": object{"output_tokens": t.Out}})
	event("message_stop", object{})
}

func halves(text string) (string, string) {
	half := len([]rune(text)) / 2
	return string([]rune(text)[:half]), string([]rune(text)[half:])
}

// openai is the Responses API.
type openai struct{}

func (openai) read(_ *http.Request, body []byte) *Request {
	var in struct {
		Model        string `json:"model"`
		Stream       bool   `json:"stream"`
		Instructions string `json:"instructions"`
		Tools        []struct {
			Type, Name string
			Tools      []struct{ Name string } // of a namespace
		}
		Input []struct {
			Type      string          `json:"type"`
			Role      string          `json:"role"`
			Content   json.RawMessage `json:"content"`
			Name      string          `json:"name"`
			CallID    string          `json:"call_id"`
			Arguments string          `json:"arguments"`
			Input     string          `json:"input"` // the text input of a custom tool
			Output    json.RawMessage `json:"output"`
		} `json:"input"`
	}
	json.Unmarshal(body, &in)
	r := &Request{Protocol: "openai", Model: in.Model, Stream: in.Stream, System: in.Instructions}
	for _, t := range in.Tools {
		switch {
		case t.Name != "" && len(t.Tools) == 0:
			r.Tools = append(r.Tools, t.Name)
		case len(t.Tools) > 0:
			for _, inner := range t.Tools {
				r.Tools = append(r.Tools, t.Name+"/"+inner.Name) // the name for calls, see answer
			}
		default:
			r.Tools = append(r.Tools, t.Type)
		}
	}
	for _, item := range in.Input {
		switch item.Type {
		case "function_call", "custom_tool_call":
			var input map[string]any
			if json.Unmarshal([]byte(item.Arguments), &input); item.Input != "" {
				input = object{"input": item.Input}
			}
			r.Messages = append(r.Messages, Message{Role: "assistant", Calls: []Call{{item.CallID, item.Name, input}}})
		case "function_call_output", "custom_tool_call_output":
			r.Messages = append(r.Messages, Message{Role: "tool",
				Results: []Result{{ID: item.CallID, Text: texts(item.Output)}}})
		case "message", "":
			if item.Role == "system" || item.Role == "developer" {
				r.System += "\n" + texts(item.Content)
				continue
			}
			r.Messages = append(r.Messages, Message{Role: item.Role, Text: texts(item.Content)})
		}
	}
	return r
}

func (openai) failure(t Turn) any {
	kind := map[int]string{401: "invalid_api_key", 429: "rate_limit_exceeded", 400: "context_length_exceeded"}[t.Status]
	if kind == "" {
		kind = "server_error"
	}
	return object{"error": object{"message": t.Text, "type": kind, "code": kind}}
}

func (openai) answer(out *stream, r *Request, t Turn) {
	id := fmt.Sprintf("resp_%04d", r.N)
	var items []object
	if t.Text != "" || len(t.Calls) == 0 {
		items = append(items, object{"type": "message", "id": "msg_" + id, "role": "assistant", "status": "completed",
			"content": []object{{"type": "output_text", "text": t.Text, "annotations": []any{}}}})
	}
	for _, c := range t.Calls {
		input, _ := json.Marshal(c.Input)
		call := object{"type": "function_call", "id": "fc_" + c.ID, "call_id": c.ID, "name": c.Name,
			"arguments": string(input), "status": "completed"}
		if space, name, ok := strings.Cut(c.Name, "/"); ok {
			call["namespace"], call["name"] = space, name
		}
		items = append(items, call)
	}
	usage := object{"input_tokens": t.In, "input_tokens_details": object{"cached_tokens": t.CacheRead,
		"cache_write_tokens": t.CacheWrite}, "output_tokens": t.Out, "output_tokens_details": object{
		"reasoning_tokens": 0}, "total_tokens": t.In + t.Out}
	response := func(status string, output []object, usage any) object {
		return object{"id": id, "object": "response", "created_at": 1, "status": status, "model": r.Model,
			"output": output, "usage": usage}
	}
	if !out.live {
		out.whole(response("completed", items, usage))
		return
	}
	out.head()
	n := 0
	event := func(kind string, data object) {
		data["type"], data["sequence_number"] = kind, n
		n++
		out.event(kind, data)
	}
	event("response.created", object{"response": response("in_progress", []object{}, nil)})
	for i, item := range items {
		event("response.output_item.added", object{"output_index": i, "item": item})
		if item["type"] == "message" {
			where := object{"item_id": item["id"], "output_index": i, "content_index": 0}
			with := func(key string, value any) object {
				o := object{key: value}
				for k, v := range where {
					o[k] = v
				}
				return o
			}
			event("response.content_part.added", with("part", object{"type": "output_text", "text": "",
				"annotations": []any{}}))
			first, rest := halves(t.Text)
			event("response.output_text.delta", with("delta", first))
			out.half()
			event("response.output_text.delta", with("delta", rest))
			event("response.output_text.done", with("text", t.Text))
		} else {
			event("response.function_call_arguments.done", object{"item_id": item["id"], "output_index": i,
				"arguments": item["arguments"]})
		}
		event("response.output_item.done", object{"output_index": i, "item": item})
	}
	event("response.completed", object{"response": response("completed", items, usage)})
}

// gemini is generateContent.
type gemini struct{}

func (gemini) read(h *http.Request, body []byte) *Request {
	type part struct {
		Text         string
		FunctionCall *struct {
			ID, Name string
			Args     map[string]any
		}
		FunctionResponse *struct {
			ID, Name string
			Response json.RawMessage
		}
	}
	type content struct {
		Role  string
		Parts []part
	}
	var in struct {
		SystemInstruction content
		Contents          []content
		Tools             []struct {
			FunctionDeclarations []struct{ Name string }
		}
	}
	json.Unmarshal(body, &in)
	name := h.URL.Path[strings.LastIndexByte(h.URL.Path, '/')+1:]
	model, method, _ := strings.Cut(name, ":")
	r := &Request{Protocol: "gemini", Model: model, Stream: method == "streamGenerateContent"}
	for _, p := range in.SystemInstruction.Parts {
		r.System += p.Text
	}
	for _, t := range in.Tools {
		for _, f := range t.FunctionDeclarations {
			r.Tools = append(r.Tools, f.Name)
		}
	}
	for _, c := range in.Contents {
		m := Message{Role: c.Role}
		if c.Role == "model" {
			m.Role = "assistant"
		}
		var said []string
		for _, p := range c.Parts {
			switch {
			case p.FunctionCall != nil:
				m.Calls = append(m.Calls, Call{p.FunctionCall.ID, p.FunctionCall.Name, p.FunctionCall.Args})
			case p.FunctionResponse != nil:
				var output struct{ Output, Error string }
				text := string(p.FunctionResponse.Response)
				if json.Unmarshal(p.FunctionResponse.Response, &output) == nil && output.Output+output.Error != "" {
					text = output.Output + output.Error
				}
				m.Results = append(m.Results, Result{ID: p.FunctionResponse.ID, Text: text, Failed: output.Error != ""})
			case p.Text != "":
				said = append(said, p.Text)
			}
		}
		m.Text = strings.Join(said, "\n")
		r.Messages = append(r.Messages, m)
	}
	return r
}

func (gemini) failure(t Turn) any {
	status := map[int]string{400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED",
		429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}[t.Status]
	if status == "" {
		status = "INTERNAL"
	}
	return object{"error": object{"code": t.Status, "message": t.Text, "status": status}}
}

func (gemini) answer(out *stream, r *Request, t Turn) {
	chunk := func(parts []object, last bool) object {
		candidate := object{"content": object{"role": "model", "parts": parts}, "index": 0}
		o := object{"candidates": []object{candidate}, "modelVersion": r.Model, "responseId": fmt.Sprintf("r%04d", r.N)}
		if last {
			candidate["finishReason"] = "STOP"
			o["usageMetadata"] = object{"promptTokenCount": t.In, "cachedContentTokenCount": t.CacheRead,
				"candidatesTokenCount": t.Out, "totalTokenCount": t.In + t.Out}
		}
		return o
	}
	var calls []object
	for _, c := range t.Calls {
		calls = append(calls, object{"functionCall": object{"id": c.ID, "name": c.Name, "args": c.Input}})
	}
	if !out.live {
		out.whole(chunk(append([]object{{"text": t.Text}}, calls...), true))
		return
	}
	out.head()
	if t.Text != "" || len(calls) == 0 {
		first, rest := halves(t.Text)
		out.event("", chunk([]object{{"text": first}}, false))
		out.half()
		out.event("", chunk([]object{{"text": rest}}, len(calls) == 0))
	}
	if len(calls) > 0 {
		out.event("", chunk(calls, true))
	}
}
