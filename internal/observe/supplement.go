package observe

import (
	"bytes"
	"encoding/json"
)

// Supplement is a message beside the original one, which is passed on unchanged: what a consumer
// renders that wants a team's doings and not tool calls.
type Supplement struct {
	Type     Category           `json:"type"`
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

// supplement adds the message for a call, or for its result.
func (o *Observer) supplement(c *call, r *result) {
	category := tools[c.Tool].category
	if category == "" {
		return
	}
	s := Supplement{category, "system", SupplementMetadata{TeamToolUseID: c.ID, ToolName: c.Tool}}
	if r == nil {
		s.Metadata.Input = bytes.ToValidUTF8(c.Input, replacement)
	} else {
		s.Metadata.IsError = r.IsError
		if s.Metadata.Result = bytes.ToValidUTF8(r.S, replacement); r.S == nil {
			s.Metadata.Result, _ = json.Marshal(r.R)
		}
	}
	o.out.Supplements = append(o.out.Supplements, s)
}
