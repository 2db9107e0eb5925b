package agent_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"cadre/internal/agent"
)

func TestKindOf(t *testing.T) {
	for _, c := range []struct {
		status int
		words  string
		want   agent.ProblemKind
	}{
		// The status of the protocol takes precedence over any words.
		{401, "the model is overloaded", agent.ProblemLogin},
		{403, "", agent.ProblemLogin},
		{429, "Invalid API key", agent.ProblemLimit},
		{529, "", agent.ProblemLimit},
		{503, "", agent.ProblemLimit},
		{500, "error 401: please log in", agent.ProblemModel},
		{404, "error 401 is what the page is about", agent.ProblemModel},
		{400, "prompt is too long: 300000 tokens > 200000 maximum", agent.ProblemContext},
		{400, "API key not valid. Please pass a valid API key.", agent.ProblemLogin},
		{400, "the house is on fire", agent.ProblemModel},

		// A status in the words of the programs.
		{0, "Failed to authenticate. API Error: 401 the key is unknown here", agent.ProblemLogin},
		{0, "unexpected status 401 Unauthorized: the key is unknown here, url: http://model/v1/responses",
			agent.ProblemLogin},
		{0, "exceeded retry limit, last status: 429 Too Many Requests", agent.ProblemLimit},
		{0, `{"error":{"code":429,"message":"slow down"}}`, agent.ProblemLimit},
		{0, `"{\"error\":{\"code\":403}}"`, agent.ProblemLogin},
		{0, "HTTP/1.1 401", agent.ProblemLogin},
		{0, "HTTP 529", agent.ProblemLimit},
		{0, "Request failed with status code 403", agent.ProblemLogin},
		{0, "statusCode=429", agent.ProblemLimit},
		{0, "429 slow down", agent.ProblemLimit},
		{0, "[401] no", agent.ProblemLogin},
		{0, "API Error: 500 the house is on fire", agent.ProblemModel},

		// Their words.
		{0, "Authentication required", agent.ProblemLogin},
		{0, "Invalid API key · Please run /login", agent.ProblemLogin},
		{0, "Please set an Auth method in your settings.json", agent.ProblemLogin},
		{0, "you must specify the GEMINI_API_KEY environment variable", agent.ProblemLogin},
		{0, "Not logged in. Run `codex login`.", agent.ProblemLogin},
		{0, "Missing environment variable: `KEY`.", agent.ProblemLogin},
		{0, "Your credit balance is too low", agent.ProblemLogin},
		{0, "log in first", agent.ProblemLogin},
		{0, "UNAUTHENTICATED", agent.ProblemLogin},
		{0, "RESOURCE_EXHAUSTED", agent.ProblemLimit},
		{0, "rate_limit_error", agent.ProblemLimit},
		{0, "You exceeded your current quota", agent.ProblemLimit},
		{0, "Overloaded", agent.ProblemLimit},
		{0, "Codex ran out of room in the model's context window.", agent.ProblemContext},
		{0, "context_length_exceeded", agent.ProblemContext},
		{0, "The input token count exceeds the maximum number of tokens allowed", agent.ProblemContext},
		{0, "stream disconnected before completion", agent.ProblemModel},
		{0, "", agent.ProblemModel},

		// A text about the agent's work does not describe its failure.
		{0, "I fixed the 401 in login.go, and the test of the login page", agent.ProblemModel},
		{0, "There are 429 files, of which line 403 is too long", agent.ProblemModel},
		{0, "The API key field is on the login form; users log in with it", agent.ProblemModel},
		{0, "port 4011 and error 40100", agent.ProblemModel},
		{0, "it took too long to authenticate-and-build", agent.ProblemModel},
		{0, "the rate limiter of the authenticator", agent.ProblemModel},
		{0, "open /srv/x: permission denied", agent.ProblemModel},
	} {
		if got := agent.KindOf(c.status, c.words); got != c.want {
			t.Errorf("%d %q is %s, not %s", c.status, c.words, got, c.want)
		}
	}
}

func TestTail(t *testing.T) {
	if short := strings.Repeat("x", 2000); agent.Tail(short) != short {
		t.Error("what is short is cut")
	}
	if got := agent.Tail(strings.Repeat("é", 3000) + " the end"); len(got) > 2010 || !utf8.ValidString(got) ||
		!strings.HasPrefix(got, "… é") || !strings.HasSuffix(got, " the end") {
		t.Errorf("%d bytes: %q", len(got), got[:20])
	}
}
