package main

import (
	"strings"
	"testing"
)

// TestArguments checks the errors for wrong arguments. Each names the mistake in the words of the
// help, quotes what was typed, and shows the usage.
func TestArguments(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("CADRE_HOME", "")
	t.Setenv("CADRE_TEAM", "")
	for line, want := range map[string]string{
		"validate": "validate needs at least one FILE: cadre validate FILE...; " +
			"see: cadre validate --help",
		"permit": "permit needs REQUEST: cadre permit [TEAM] REQUEST; see: cadre permit --help",
		"mode demo": `mode needs NAME and MODE, and "demo" is not enough: ` +
			"cadre mode [TEAM] NAME MODE; see",
		"status a b": `"b" is one argument too many: cadre status [TEAM]; see: cadre status --help`,
		"send demo --to ann hi you": `"you" is one argument too many: cadre send [TEAM] --to ann TEXT. ` +
			"Put a text of several words in quotes; see: cadre send --help",
		"send --to ann":     "send needs TEXT: cadre send [TEAM] --to ann TEXT; see: cadre send --help",
		"permit x --reason": "--reason needs a value: --reason VALUE; see: cadre permit --help",
		"log demo -n":       "--lines needs a whole number, such as 20; see: cadre log --help",
		"run port the parser": `"the" is one argument too many. Put a goal in quotes. ` +
			"To run it: cadre run 'port the parser'",
		"run a.yaml b.yaml":       `"b.yaml" is one argument too many: cadre run FILE; see: cadre run --help`,
		"run a.yaml --policy me":  "--policy is for a goal. In a.yaml the key is: permissions.policy",
		"run a.yaml --check make": "--check is for a goal. In a.yaml the key is: checks",
		"inbox demo --as ann": "inbox takes the member's name without --as. " +
			"To read its mail: cadre inbox [TEAM] NAME",
		"task done --fence 1":      "task done needs ID: cadre task done [TEAM] ID [--as NAME]",
		"doctor x":                 `doctor takes no arguments, and "x" is one; see: cadre doctor --help`,
		"hooks try":                "hooks try needs HOOK: cadre hooks try [TEAM] HOOK; see: cadre hooks try --help",
		"resend demo":              `resend needs TEAM and NAME, and "demo" is not enough`,
		"budget demo --tokens 1.5": `--tokens takes a whole number, such as 20, not "1.5"; see: cadre budget --help`,
		"log demo -n abc":          `--lines takes a whole number, such as 20, not "abc"; see: cadre log --help`,
		"budget demo --time 5":     `--time takes a duration, such as 30s, 10m or 2h, not "5"`,
		"budget demo --usd much":   `--usd takes an amount of US dollars, such as 5, 0.5, $5 or 5 USD, not "much"`,
		"--color x status":         `--color "x": it is auto, always or never; see: cadre status --help`,
		"foo":                      `"foo" is not a command; see: cadre help --all`,
		"rnu":                      `"rnu" is not a command, did you mean run?; see: cadre help --all`,
		"taks":                     `"taks" is not a command, did you mean task or wake?; see: cadre help --all`,
		"task foo":                 `"task foo" is not a command; see: cadre task --help`,
		"stauts --watch":           `"stauts" is not a command, did you mean status?; see: cadre help --all`,
		"--json stauts demo -w":    `"stauts" is not a command, did you mean status?; see: cadre help --all`,
		"task complete a --as ann": `"task complete" is not a command, did you mean task done?; see: cadre task --help`,
		"--watch status":           "unknown flag: --watch; see: cadre --help",
		"create x -y":              "unknown flag: -y; see: cadre create --help",
		"status -wy":               "unknown flag: -y; see: cadre status --help",
		"status -watch":            "unknown flag: -a, did you mean --watch?; see: cadre status --help",
		"run x.yaml --detatch":     "unknown flag: --detatch, did you mean --detach?; see: cadre run --help",
		"status --nonsense":        "unknown flag: --nonsense; see: cadre status --help",
		"task --watch":             "unknown flag: --watch; see: cadre task --help",
		"create x --dir /no/such":  "the directory /no/such does not exist. Create it, or name another one with --dir",
		"create x --dir /dev/null": "/dev/null is not a directory. Name one with --dir",
	} {
		args := strings.Fields(line)
		a := newApp()
		_, err := a.root(args).ExecuteC()
		says(t, line, err, want)
		if err != nil && status(err) != hopeless {
			t.Errorf("%s: status %d", line, status(err))
		}
	}
}
