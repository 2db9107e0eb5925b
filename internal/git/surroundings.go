package git

import (
	"slices"
	"strings"
)

// settings apply to every command. No hook of the repository runs, no file monitor or maintenance
// starts, and git signs nothing. What git wrote survives a loss of power. Messages are used as
// given, and paths are printed unquoted.
var settings = []string{noHooks, "core.fsync=added,reference", "core.fsmonitor=false", "core.quotePath=false",
	"gc.auto=0", "commit.gpgSign=false",
	"i18n.commitEncoding=UTF-8", "advice.addEmbeddedRepo=false"}

// noHooks keeps git from finding hooks.
const noHooks = "core.hooksPath=/dev/null"

// ways are prefixes of variables that configure how git reaches a remote.
var ways = []string{"GIT_SSH", "GIT_ASKPASS", "GIT_PROXY_COMMAND", "GIT_SSL_", "GIT_HTTP_", "GIT_ALLOW_PROTOCOL",
	"GIT_PROTOCOL"}

// persons are the variables for git's program, the range of its search for a repository, and the
// committer.
var persons = []string{"GIT_EXEC_PATH", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_AUTHOR_NAME",
	"GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"}

// environment returns an environment in which git acts only on what it is given here. git ignores
// the repository, index or commit on which cadre's caller is working. The place of its
// configuration is unchanged, and so are additions to it.
func (r Runner) environment(env []string) []string {
	asks := true
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		if r.Remote && slices.ContainsFunc(ways, func(way string) bool { return strings.HasPrefix(name, way) }) {
			asks = asks && name != "GIT_ASKPASS"
			return false
		}
		return strings.HasPrefix(name, "GIT_") && !strings.HasPrefix(name, "GIT_CONFIG_") &&
			!slices.Contains(persons, name)
	})
	if r.Remote {
		env = append(env, "SSH_ASKPASS_REQUIRE=never")
		if asks { // otherwise a program opens a window
			env = append(env, "GIT_ASKPASS=")
		}
	}
	return append(env, "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_LITERAL_PATHSPECS=1",
		"GIT_EDITOR=true", "LC_ALL=C")
}

// localVariables make git use another repository, or another part of it, than the one of its
// working directory.
var localVariables = []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE",
	"GIT_INDEX_VERSION", "GIT_OBJECT_DIRECTORY",
	"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE",
	"GIT_REPLACE_REF_BASE", "GIT_NAMESPACE", "GIT_PREFIX",
	"GIT_INTERNAL_SUPER_PREFIX", "GIT_REFLOG_ACTION", "GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"}

// Local returns an environment in which git uses the repository of its working directory, for
// commands of the user. The user's other settings for git stay.
func Local(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(localVariables, name)
	})
}
