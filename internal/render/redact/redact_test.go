package redact

import (
	"fmt"
	"strings"
	"testing"
)

// secrets have known shapes. They are concatenated so that scanners do not take this file for a
// leak.
var secrets = []string{
	"sk-" + "ant-api03-Zx81kfQw0Lm2Np4Rs6Tv", "sk-" + "proj-abcdefghijklmnopqrstuv",
	"gh" + "p_16C7e42F292c6912E7710c838347Ae178B4a", "github" + "_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz",
	"gl" + "pat-abcdEFGH1234ijklMNOP", "AK" + "IAIOSFODNN7EXAMPLE", "xo" + "xb-123456789012-abcdefABCDEF",
	"AI" + "zaSyA1234567890abcdefghijklmnopqrstu", "np" + "m_abcdefghijklmnopqrstuvwxyz0123456789",
	"hf" + "_AbCdEfGhIjKlMnOpQrStUvWxYz012345", "SG" +
		".abcdefghijklmnopqrstuv.ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefg",
	"ya" + "29.a0AfH6SMBxyz0123456789-abcdef",
	"do" + "p_v1_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	"hooks." + "slack.com/services/T00000000/B00000000/XXXXabcdefghijklmnop01",
	"xa" + "pp-1-A0123-456-abcdef0123456789",
	"ey" + "JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLW9mLWl0",
}

func TestText(t *testing.T) {
	for _, secret := range secrets {
		for _, around := range []string{"%s", "it is %s.", "key=%s", "\"%s\",", "(%s)", "curl -H 'X-Key: %s' x"} {
			if got := Text(fmt.Sprintf(around, secret)); strings.Contains(got, secret[4:]) ||
				!strings.Contains(got, Mark) {
				t.Errorf("%s in %q gives %q", secret, around, got)
			}
		}
	}
	for text, want := range map[string]string{
		"export DEPLOY_TOKEN=abc; make":                   "export DEPLOY_TOKEN=[redacted]; make",
		"PASSWORD=hunter2":                                "PASSWORD=[redacted]",
		"PASSWORD=\"two words\" x":                        "PASSWORD=[redacted] x",
		"DB_PASSWD='x y' make":                            "DB_PASSWD=[redacted] make",
		"password: hunter2":                               "password: [redacted]",
		`{"password":"hunter2!","user":"ann"}`:            `{"password":"[redacted]","user":"ann"}`,
		"the API key is 9f8e7d6c5b4a39281706f5e4d3c2b1a0": "the API key is [redacted]",
		"Authorization: Bearer abc123def456":              "Authorization: Bearer [redacted]",
		"curl -H \"authorization: token 1234abcd\" url":   "curl -H \"authorization: token [redacted]\" url",
		"bearer 0123456789abcdef":                         "bearer [redacted]",
		"postgres://ann:s3cr3t@db:5432/x":                 "postgres://ann:[redacted]@db:5432/x",
		"a\n-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nb": "a\n[redacted]\nb",
		"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz":                             "[redacted]",
		"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY":          "aws_secret_access_key = [redacted]",
		"secret_access_key: wJ/lrX/tnFEM1/K7MDENG/bPxRfiCYEXAMPLEKEY":               "secret_access_key: [redacted]",
		`{"access_token_secret": "Qx81kfw0Lm2Np4"}`:                                 `{"access_token_secret": "[redacted]"}`,
		`{"SecretAccessKey": "Qx81kfw0Lm2Np4"}`:                                     `{"SecretAccessKey": "[redacted]"}`,
		`SecretString: "Qx81kfw0Lm2Np4"`:                                            `SecretString: "[redacted]"`,
		"token_value: Qx81kfw0Lm2Np4":                                               "token_value: [redacted]",
		"AccountKey=Qx81kfw0Lm2Np4==;Endpoint=x":                                    "AccountKey=[redacted];Endpoint=x",
		"the secret: password: Qx81kfw0":                                            "the secret: password: [redacted]",
		"the token secret: Qx81kfw0Lm2":                                             "the token secret: [redacted]",
		"my token-9f8e7d6c5b4a is it":                                               "my token[redacted] is it",
		"curl -s -u ann:hunter https://x.org": "curl -s -u ann:[redacted] " +
			"https://x.org",
		"curl --user 'ann:hunter' x":      "curl --user 'ann:[redacted]' x",
		"Cookie: session=abc; theme=dark": "Cookie: [redacted]",
		"Set-Cookie: id=a3f\nbody":        "Set-Cookie: [redacted]\nbody",
		"user: ann\npassword: hunterhunter\nhost: db": "user: ann\npassword: " +
			"[redacted]\nhost: db",
		`{"password": "hunterhunter", "n": 1}`: `{"password": "[redacted]", "n": 1}`,
	} {
		if got := Text(text); got != want {
			t.Errorf("%q gives %q, not %q", text, got, want)
		}
	}
	for _, text := range []string{
		"", "Fix the token parser in lexer.go", "the secret: rotate it weekly", "TOKEN=$TOKEN make",
		"PASSWORD=${DB_PASSWORD}", "token: <your token>", "if token == other", "max_tokens=4096",
		"bearer authentication is used", "task-abcdefghijklmnopqrst", "basic understanding",
		"https://example.org/a:b@c", "the monkey=1", "3f602cac25910858092307df6abec12a385b07f1", "password policy",
		"see internal/token/parser_test.go",
		"skip the key exchange", "tokens are counted", "sort by primary key", "password: required for everybody",
		"curl -s https://example.org", "the cookie: a small file", "TOKEN_FILE=/run/secrets/ci", "see tokenizer2.go",
		"docs/secrets/one/two/three.md2",
	} {
		if got := Text(text); got != text {
			t.Errorf("%q gives %q", text, got)
		}
	}
}
