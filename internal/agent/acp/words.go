package acp

import (
	"errors"
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
	return words
}

// problemOf tells what helps from the code, which is an HTTP status where an agent passes one on, else from what it says.
func problemOf(err error) *agent.Problem {
	p := &agent.Problem{Text: wordsOf(err)}
	p.Kind = kindOf(p.Text)
	if refused := (*sdk.RequestError)(nil); errors.As(err, &refused) {
		switch refused.Code {
		case 401, 403:
			p.Kind = agent.ProblemLogin
		case 429, 529:
			p.Kind = agent.ProblemLimit
		}
	}
	return p
}

// kindOf tells what helps from what the agent says.
func kindOf(words string) agent.ProblemKind {
	text := strings.ToLower(words)
	has := func(all ...string) bool {
		for _, w := range all {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("context window", "context length", "too long", "token limit", "exceeds the maximum number of tokens"):
		return agent.ProblemContext
	case has("authenticat", "unauthorized", "401", "403", "api key", "log in", "login", "permission_denied"):
		return agent.ProblemLogin
	case has("429", "rate limit", "quota", "resource_exhausted", "resource exhausted", "overloaded", "too many requests"):
		return agent.ProblemLimit
	}
	return agent.ProblemModel
}
