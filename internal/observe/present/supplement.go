package present

import (
	"bytes"
	"encoding/json"

	"cadre/internal/observe/protocol"
)

// Supplement is a message beside the original one, which is passed on unchanged: what a consumer
// renders that wants a team's doings and not tool calls.
type Supplement struct {
	Type     protocol.Category  `json:"type"`
	Role     string             `json:"role"` // system
	Metadata SupplementMetadata `json:"metadata"`
}

// SupplementMetadata says which tool use it belongs to. A call has its input, a result what became
// of it.
type SupplementMetadata struct {
	TeamToolUseID string          `json:"teamToolUseId"`
	ToolName      string          `json:"toolName"`
	Input         json.RawMessage `json:"input,omitempty"`
	Result        json.RawMessage `json:"result,omitempty"` // the structured one, else the text
	IsError       bool            `json:"isError,omitempty"`
}

// FlagKey is the key under which the original message's metadata say that it has supplements.
const FlagKey = "isTeamToolUse"

// replacement stands for what is no character: the original may be no valid UTF-8, and what is said
// beside it is.
var replacement = []byte("\uFFFD")

// SupplementOf is the message for a tool use.
func SupplementOf(u *protocol.ToolUse) Supplement {
	s := Supplement{protocol.CategoryOf(u.Call.Name), "system", SupplementMetadata{TeamToolUseID: u.Call.ID,
		ToolName: u.Call.Name}}
	if u.Result == nil {
		s.Metadata.Input = bytes.ToValidUTF8(u.Call.Input, replacement)
		return s
	}
	s.Metadata.IsError = u.Result.IsError
	if s.Metadata.Result = bytes.ToValidUTF8(u.Result.S, replacement); u.Result.S == nil {
		s.Metadata.Result, _ = json.Marshal(u.Result.R)
	}
	return s
}
