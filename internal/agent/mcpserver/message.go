package mcpserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// message is one JSON-RPC message from a client.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"` // a string or a number; of requests and answers
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"` // of answers
	Error   json.RawMessage `json:"error"`  // of answers
}

// These are codes of JSON-RPC and of MCP.
const (
	parseError         = -32700
	invalidRequest     = -32600
	methodNotFound     = -32601
	invalidParams      = -32602
	internalError      = -32603
	unsupportedVersion = -32022
)

// refused says why a request has no result.
type refused struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// decoded returns the message in a text, or the error answer if it has none.
func decoded(text []byte) (m message, broken json.RawMessage) {
	if !json.Valid(text) {
		return m, refusal(nil, parseError, "not a JSON-RPC message: it is not JSON")
	}
	err := json.Unmarshal(text, &m)
	id := m.ID
	if string(id) == "null" || len(id) > 0 && bytes.IndexByte([]byte(`"-0123456789`), id[0]) < 0 {
		id = nil
	}
	switch {
	case err != nil:
		return m, refusal(id, invalidRequest, "not a JSON-RPC message: "+err.Error())
	case m.Version != "2.0":
		return m, refusal(id, invalidRequest, fmt.Sprintf("not a JSON-RPC message: the version is %q, not 2.0",
			m.Version))
	case m.Method == "" && m.Result == nil && m.Error == nil:
		return m, refusal(id, invalidRequest, "not a JSON-RPC message: it has no method and no result")
	case m.Method != "" && m.ID != nil && id == nil:
		return m, refusal(nil, invalidRequest, "not a JSON-RPC message: an id is a string or a number")
	}
	m.ID = id
	return m, nil
}

func (m message) isRequest() bool { return m.Method != "" && len(m.ID) > 0 }

// answer returns the answer to a request: its result, or why it has none.
func (m message) answer(result any, no *refused) json.RawMessage { return answer(m.ID, result, no) }

// refusal returns the answer to a text that is not a message, or has no usable id. The id is nil if
// there is none.
func refusal(id json.RawMessage, code int, text string) json.RawMessage {
	return answer(id, nil, &refused{Code: code, Message: text})
}

func answer(id json.RawMessage, result any, no *refused) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"` // nil is null
		Result  any             `json:"result,omitempty"`
		Error   *refused        `json:"error,omitempty"`
	}{"2.0", id, result, no})
	if err != nil {
		panic(err) // everything can be marshalled except schemas, which tests of the tools parse
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// These are the versions of the protocol. Since the stateless one there is no initialize: each
// request names its version.
const (
	stateless    = "2026-07-28"
	newestBefore = "2025-11-25"
)

var versions = []string{stateless, newestBefore, "2025-06-18", "2025-03-26", "2024-11-05"}

// negotiated returns the version that initialize answers to a client.
func negotiated(asked string) string {
	if asked != stateless && slices.Contains(versions, asked) {
		return asked
	}
	return newestBefore
}

// implementation names a client or a server.
type implementation struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// params are the parameters of requests; each request has its own.
type params struct {
	Meta      json.RawMessage `json:"_meta"`
	Version   string          `json:"protocolVersion"`
	Client    implementation  `json:"clientInfo"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`

	beside beside
	said   map[string]any // everything in Meta
}

// beside is what a request of the stateless protocol says about its client.
type beside struct {
	Version      string          `json:"io.modelcontextprotocol/protocolVersion"`
	Client       implementation  `json:"io.modelcontextprotocol/clientInfo"`
	Capabilities json.RawMessage `json:"io.modelcontextprotocol/clientCapabilities"`
}

func readParams(text json.RawMessage) (p params, err error) {
	if len(text) == 0 {
		return p, nil
	}
	err = json.Unmarshal(text, &p)
	if err == nil && len(p.Meta) > 0 {
		err = errors.Join(json.Unmarshal(p.Meta, &p.said), json.Unmarshal(p.Meta, &p.beside))
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = fmt.Errorf("%s cannot be a %s", cmp.Or(wrong.Field, "params"), wrong.Value)
	}
	return p, err
}

func (b beside) stateless() bool { return b.Version >= stateless }

// check refuses a version that the server does not support, and a client that does not state its
// capabilities.
func (b beside) check() *refused {
	switch {
	case !b.stateless():
		return nil
	case !slices.Contains(versions, b.Version):
		return &refused{unsupportedVersion, "unsupported protocol version",
			map[string]any{"supported": versions, "requested": b.Version}}
	case len(b.Capabilities) == 0 || b.Capabilities[0] != '{':
		return &refused{Code: invalidParams,
			Message: "missing or invalid _meta field io.modelcontextprotocol/clientCapabilities"}
	}
	return nil
}

// result has the fields that only results of the stateless protocol have.
type result struct {
	Type string         `json:"resultType,omitempty"`
	Meta map[string]any `json:"_meta,omitempty"`
}

func (b beside) result(of implementation) result {
	if !b.stateless() {
		return result{}
	}
	return result{"complete", map[string]any{"io.modelcontextprotocol/serverInfo": of}}
}

// cacheable says who may cache a result, and for how long.
type cacheable struct {
	TTL   int    `json:"ttlMs"`
	Scope string `json:"cacheScope"`
}

// oneMembers marks results of one member, which are stale at once. Claude Code refuses a list
// without a scope.
var oneMembers = cacheable{Scope: "private"}

// toolsAlone lists the server's capabilities: tools, without notifications of changes.
var toolsAlone = map[string]struct{}{"tools": {}}

// These are the results.
type (
	initialized struct {
		Version      string              `json:"protocolVersion"`
		Capabilities map[string]struct{} `json:"capabilities"`
		Server       implementation      `json:"serverInfo"`
		Instructions string              `json:"instructions,omitempty"`
	}
	discovered struct {
		result
		cacheable
		Versions     []string            `json:"supportedVersions"`
		Capabilities map[string]struct{} `json:"capabilities"`
		Instructions string              `json:"instructions,omitempty"`
	}
	listed struct {
		result
		cacheable
		Tools []tool `json:"tools"`
	}
	tool struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Schema      json.RawMessage `json:"inputSchema"`
		Meta        map[string]any  `json:"_meta,omitempty"`
	}
	called struct {
		result
		Content []content `json:"content"`
		IsError bool      `json:"isError,omitempty"`
	}
	content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
)
