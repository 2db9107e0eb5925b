package acp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"cadre/internal/agent"
)

// wordsOf are the agent's own words for an error.
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
	return cmp.Or(words, "the agent failed without a word")
}

// problemOf tells what helps from the code, which is an HTTP status where an agent passes one on,
// else from what it says.
func problemOf(err error) *agent.Problem {
	status := 0
	if refused := (*sdk.RequestError)(nil); errors.As(err, &refused) && refused.Code >= 400 && refused.Code < 600 {
		status = refused.Code
	}
	words := wordsOf(err)
	p := &agent.Problem{Kind: agent.KindOf(status, words), Text: words}
	var answer struct { // of the model's server, which gemini passes on as it came
		Error struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(words), &answer) == nil && answer.Error.Message != "" {
		p.Text = fmt.Sprintf("API error %d: %s", answer.Error.Code, answer.Error.Message)
	}
	return p
}
