package acp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"cadre/internal/agent"
)

// wordsOf returns the agent's own words for an error.
func wordsOf(err error) string {
	var refused *sdk.RequestError
	if !errors.As(err, &refused) {
		return err.Error()
	}
	words := refused.Message
	switch data := refused.Data.(type) {
	case string:
		words += ": " + data
	case map[string]any:
		for _, key := range []string{"details", "message", "error"} {
			if text, ok := data[key].(string); ok && !strings.Contains(words, text) {
				words += ": " + text
			}
		}
	}
	return cmp.Or(words, "the agent failed without a message")
}

// problemOf classifies an error by its code, which is an HTTP status for some agents, or by its
// words.
func problemOf(err error) *agent.Problem {
	status := 0
	if refused := (*sdk.RequestError)(nil); errors.As(err, &refused) && refused.Code >= 400 && refused.Code < 600 {
		status = refused.Code
	}
	words := wordsOf(err)
	p := &agent.Problem{Kind: agent.KindOf(status, words), Text: words}
	var answer struct { // from the model's server, which gemini forwards unchanged
		Error struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(words), &answer) == nil && answer.Error.Message != "" {
		if at := p.FreeAt(time.Time{}); !at.IsZero() { // the delay may be beside the message
			p.After = at.Sub(time.Time{})
		}
		p.Text = fmt.Sprintf("API error %d: %s", answer.Error.Code, answer.Error.Message)
	}
	return p
}
