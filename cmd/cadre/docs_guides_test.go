package main

// parser is a project whose Makefile builds and lints. Its tests pass once there is a file VERSION.
const parser = `
git init -q -b main
cat >Makefile <<'END'
build:
	@echo built
test:
	@test -f VERSION || { echo "VERSION is missing" >&2; exit 1; }
	@echo 12 tests passed
lint:
	@echo no findings
END
echo "## 1.0: the new grammar" >CHANGELOG.md
git add -A
git commit -q -m "Begin"
`

// demo is a script that creates the team demo in the project of parser. Its member ann acts by
// commands, and has done what the standard input of the script says.
const demo = parser + `
cat >$BIN/demo <<'END'
#!/bin/sh
set -e
cadre abort demo --reason again >/dev/null 2>&1 || true
cadre cleanup demo --branches --force >/dev/null 2>&1 || true
git reset -q --hard
git clean -q -f
echo "mine" >notes.md
cadre create demo --check 'lint: make lint'
cadre spawn demo ann --agent external
cadre task add demo "Write the parser"
cadre task claim demo 1 --as ann
sh -e
cadre task done demo 1 --as ann --result done
END
chmod +x $BIN/demo
`

// recorded makes programs with the names of agents that print recordings of the real ones, and a
// relay that accepts all input.
const recorded = `
play() { printf '#!/bin/sh\nexec cat "%s"\n' "$PROJECT/$2" >"$BIN/$1"; chmod +x "$BIN/$1"; }
play claude internal/observe/testdata/claude/2.1.47/stream.jsonl
play ... internal/observe/testdata/claude/2.1.47/stream.jsonl
play codex internal/agent/headless/testdata/codex-0.169.0/turn.jsonl
play gemini internal/agent/headless/testdata/gemini-0.61.0/turn.jsonl
play opencode internal/agent/headless/testdata/opencode-1.18.33/turn.jsonl
printf '#!/bin/sh\nexec cat >/dev/null\n' >"$BIN/relay"
chmod +x "$BIN/relay"
claude >stream.jsonl
mkdir -p ~/.claude/projects/-home-me-project
cp "$PROJECT"/internal/observe/testdata/claude/2.1.329/tmux/*.jsonl ~/.claude/projects/-home-me-project
cp -R "$PROJECT"/internal/observe/testdata/claude/2.1.329/tmux/snap/10-subagents/* ~/.claude
`

// inE2E is why the commands of a database are not run.
const inE2E = "it needs a database; e2e runs it with a real one"

// guides maps each document to what its reader needs.
var guides = map[string]guide{
	"docs/tracing.md": {},
	"docs/notes.md": {
		setup: parser + `cadre create demo`,
		steps: map[string]needs{
			"cadre note set demo decisions/api 'Errors are text.' --if-seq 1": {
				before: "cadre note append demo decisions/api 'They have a code.'", status: 1},
		}},
	"docs/search.md": {setup: parser + `cadre create demo && cadre spawn demo ann --agent external && cadre task add demo "the parser" &&
cadre note set demo tried "a parser without a lexer" && cadre send demo --to ann "The rate limit of the parser: retry."`},
	"docs/serve.md": {steps: map[string]needs{
		"cadre serve release":   {notRun: "it stays; TestServe in e2e runs it"},
		"cadre serve --all":     {notRun: "it stays; TestServeAll in e2e runs it"},
		"cadre serve --install": {notRun: "it asks at a terminal; TestSystemdUnit has systemd read what it writes"},
		"curl --unix-socket ~/.cadre/server/socket http://cadre/v1/teams": {
			notRun: "it needs curl and a server; TestServedMember in e2e has both"},
	}},
	"README.md": {
		setup: parser + `
sed -n '/^` + "```yaml/,/^```" + `$/p' "$PROJECT/README.md" | sed '1d;$d' >release.yaml
mkdir ../cadre
cp -r "$PROJECT/internal/run/templates/builtin" ../cadre
cd ../cadre
git init -q
git add -A
git commit -q -m "Begin"`,
		steps: map[string]needs{
			"cadre run --template health":              {in: "src/cadre"},
			"go run ./cmd/cadre run --template health": {notRun: "it compiles the program, which this test is"},
			"CGO_ENABLED=0 go install ./cmd/cadre":     {notRun: "it compiles the program, which this test is"},
			"make test":                                {notRun: "it is what runs this test"},
			`cadre run "Port the parser to the new grammar, with tests" --members 2 --budget-tokens 2000000`: {
				in: "src/parser", notRun: "it needs an agent; TestReadmeGoal in e2e runs it with one"},
			"cadre run release.yaml": {status: 1},
			`cadre send port-the-parser-to-the-new-a3c759 --to mate-1 "Skip the slow tests."`: {
				notRun: "it is for the team of the agent above"},
		},
	},
	"CONTRIBUTING.md": {steps: map[string]needs{
		"make short": {notRun: "it is a part of make test"},
		"make test":  {notRun: "it is what runs this test"},
		"make check": {notRun: "it is what runs this test"},
	}},
	"docs/architecture/promises.md": {steps: map[string]needs{
		"go test ./internal/testkit/simtest -run TestHistories -seed 3855 -v": {notRun: "it is a test of its own"},
		"make sim FOR=10m": {notRun: "it takes ten minutes"},
	}},
	"docs/agents.md": {steps: map[string]needs{
		"claude mcp add cadre -- cadre mcp --team demo": {
			notRun: "it changes the settings of a Claude Code; TestLeadThroughMCP in e2e connects one in the same way"},
		"CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS=1 CLAUDE_CODE_TEAMMATE_COMMAND=$(which cadre) claude --teammate-mode " +
			"tmux": {
			notRun: "it needs a terminal and a Claude Code; the tests of claudeteam_agents_test.go in e2e have both"},
	}},
	"docs/panes.md": {steps: map[string]needs{
		"cadre panes TEAM": {notRun: "it needs a terminal in tmux; TestPanesOfABackgroundTeam in e2e has one"},
	}},
	"docs/team-files.md": {setup: `cadre create demo
cadre spawn demo ann --agent external
cadre spawn demo bob --agent external
printf 'name: sweep\nmaxParallel: 2\nmembers: [{name: worker, count: 6}]\n' >sweep.yaml
printf 'tasks: [{id: docs, run: make docs}]\n' >>sweep.yaml`},
	"docs/templates.md": {},
	"docs/paths.md": {setup: `cadre create demo
cadre spawn demo ann --agent external
cadre task add demo Lexer --name lexer --paths 'src/lexer/**,docs/lexer.md'
cadre task claim demo lexer --as ann`},
	"docs/consolidation.md": {
		setup: demo,
		steps: map[string]needs{
			"cadre shutdown demo --graceful":              {before: "echo 'echo x >parser.c' | demo"},
			`cadre consolidate demo -m "Port the parser"`: {before: "echo 'echo x >parser.c' | demo"},
			"cadre consolidate demo --include notes.md":   {before: "echo 'echo x >>notes.md' | demo"},
			"cadre consolidate demo --only src":           {before: "echo 'mkdir -p src; echo x >src/parser.c' | demo"},
			"cadre consolidate demo --clean":              {before: "echo 'echo x >lexer.c' | demo"},
			"cadre consolidate demo --with-check-changes": {before: "echo 'echo x >grammar.c' | demo"},
			"cadre consolidate demo --no-commit":          {before: "echo 'echo x >tokens.c' | demo"},
			"cadre consolidate demo --rollback": {before: "echo 'echo x >tree.c' | demo; cadre shutdown " +
				"demo --graceful"},
		},
	},
	"docs/moving.md": {
		setup: demo + `
git init -q --bare -b main ../remote
git remote add origin ../remote
git push -q origin main
git clone -q ../remote ../there
echo 'echo x >parser.c' | demo
cadre push demo --yes`,
		steps: map[string]needs{
			"cadre pull demo && cadre resume demo": {in: "src/there", home: ".there"},
			"cadre consolidate demo --push":        {before: "cadre consolidate demo --push --yes"},
		},
	},
	"docs/database.md": {steps: map[string]needs{
		"cadre store init --grant worker --store 'postgres://owner@db.example/work?sslmode=verify-full'": {notRun: inE2E},
		"export CADRE_STORE='postgres://worker@db.example/work?sslmode=verify-full'":                     {notRun: inE2E},
		"cadre doctor":                         {notRun: inE2E},
		"cadre store move demo files database": {notRun: inE2E},
		"cadre store move demo database files": {notRun: inE2E},
		"cadre run release.yaml":               {notRun: inE2E},
	}},
	"docs/machines.md": {steps: map[string]needs{
		"cadre host --label gpu --slots 8": {notRun: inE2E},
		"cadre run train.yaml":             {notRun: inE2E},
		"cadre hosts":                      {notRun: inE2E},
		"cadre hosts --drain trainer-2":    {notRun: inE2E},
	}},
	"docs/recovery.md": {
		setup: parser + `
cadre create demo
cadre spawn demo bob --agent external
cadre task add demo "Read the rules"
cadre task add demo "Write the parser"
cadre task add demo "Write the tests" --run "echo x >tests.c" --owner bob`,
		steps: map[string]needs{
			"cadre resume demo --dir ~/new/place": {before: "mkdir ~/new; mv ~/src/parser ~/new/place; mkdir " +
				"~/src/parser"},
			"cadre fsck demo": {before: "cadre create demo"},
			"cadre resume demo --from-git": {in: "new/place",
				before: "cadre checkpoint demo; rm -r ~/.cadre/teams/demo"},
			"cadre reassign demo 3 ann": {before: "cadre spawn demo ann --agent shell"},
			"cadre task show demo 3 --patch": {before: "until cadre task show demo 3 --json | grep '\"commit\"'; " +
				"do sleep 0.1; done"},
		},
	},
	"docs/other-teams.md": {
		setup: recorded,
		steps: map[string]needs{
			"cadre observe --claude-team session-b1a8c647": {until: "alice"},
			"cadre observe --sdk-url :8700 --exec claude --as-team fx": {
				notRun: "it needs Claude Code 2.1.47; the tests of relay_agents_test.go in e2e have it"},
		},
	},
	"docs/hooks.md": {
		setup: parser + `
mkdir ~/.claude
sed -n '/^` + "```json/,/^```" + `$/p' "$PROJECT/docs/hooks.md" | sed '1d;$d' >~/.claude/settings.json
cadre create demo`,
	},
	"docs/observe.md": {setup: recorded},
	"docs/server-security.md": {steps: map[string]needs{
		"cadre serve --listen 127.0.0.1:7433 --host https://board.example": {
			notRun: "it stays, and needs a proxy; TestOrigins in internal/server has such hosts"},
	}},
}
