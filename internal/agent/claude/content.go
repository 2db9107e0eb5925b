package claude

import (
	"encoding/json"
	"strings"

	"cadre/internal/agent"
	"cadre/internal/team"
)

// Usage is what one call of the model used, as the program writes it.
type Usage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

// Team returns the usage as a team counts it. The program writes no cost with it.
func (u Usage) Team() team.Usage {
	return team.Usage{InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.CacheRead,
		CacheWriteTokens: u.CacheWrite}
}

// Sum adds two usages.
func Sum(u, v team.Usage) team.Usage {
	return team.Usage{InputTokens: u.InputTokens + v.InputTokens, OutputTokens: u.OutputTokens + v.OutputTokens,
		CacheReadTokens:  u.CacheReadTokens + v.CacheReadTokens,
		CacheWriteTokens: u.CacheWriteTokens + v.CacheWriteTokens, CostMicroUSD: u.CostMicroUSD + v.CostMicroUSD}
}

// Block is one block of a message: a text, the use of a tool, or the result of one.
type Block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	Content   json.RawMessage `json:"content"`
}

// Blocks returns the blocks of a message; a bare text is one block.
func Blocks(content json.RawMessage) []Block {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []Block{{Type: "text", Text: text}}
	}
	var list []Block
	agent.Parse(content, &list)
	return list
}

// TextOf returns the text of a tool's result, or of a message.
func TextOf(content json.RawMessage) string {
	var parts []string
	for _, b := range Blocks(content) {
		if b.Type == "text" {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}
