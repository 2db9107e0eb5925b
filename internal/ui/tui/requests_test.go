package tui

import "testing"

// TestInputOf: a request shows its command or its edit first, and hides nothing.
func TestInputOf(t *testing.T) {
	for input, want := range map[string]string{
		`{"command":"a && b\nc","timeout":9}`: "a && b\nc\n{\n  \"timeout\": 9\n}",
		`{"new_string":"y\nz","old_string":"x","file_path":"src/main.go","replace_all":true}`: "src/main.go\n- x\n+ y\n+ z\n" +
			"{\n  \"replace_all\": true\n}",
		`{"file_path":"a","content":"one\n\ntwo\n"}`: "a\n+ one\n+ \n+ two",
		`{"command":"ls","command":"rm"}`:            "{\n  \"command\": \"ls\",\n  \"command\": \"rm\"\n}",
		`{"command":["ls"],"x":"a<b"}`:               "{\n  \"command\": [\n    \"ls\"\n  ],\n  \"x\": \"a<b\"\n}",
		`{"command":"ls"} {}`:                        `{"command":"ls"} {}`,
		"no JSON":                                    "no JSON",
	} {
		if got := inputOf(input); got != want {
			t.Errorf("%s is shown as\n%s\nwant\n%s", input, got, want)
		}
	}
}
