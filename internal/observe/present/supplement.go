package present

import (
	"bytes"
	"encoding/json"

	"cadre/internal/observe/protocol"
)

// Supplement is a message beside the original one, which is passed on unchanged. It is for
// consumers that render a team's activity instead of tool calls.
type Supplement struct {
	Type     protocol.Category  `json:"type"`
	Role     string             `json:"role"` // system
	Metadata SupplementMetadata `json:"metadata"`
}

// SupplementMetadata names the tool use. For a call it has the input, for a result the outcome.
type SupplementMetadata struct {
	TeamToolUseID string          `json:"teamToolUseId"`
	ToolName      string          `json:"toolName"`
	Input         json.RawMessage `json:"input,omitempty"`
	Result        json.RawMessage `json:"result,omitempty"` // the structured result, or the text
	IsError       bool            `json:"isError,omitempty"`
}

// FlagKey is the key in the original message's metadata that says that it has supplements.
const FlagKey = "isTeamToolUse"

// replacement replaces invalid UTF-8. The original may be invalid, but supplements are always
// valid.
var replacement = []byte("\uFFFD")

// SupplementOf returns the supplement for a tool use.
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
