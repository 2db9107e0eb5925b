package shell

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cadre/internal/team"
)

// environment returns the variables of the task's command. results is the folder with the results
// of earlier tasks. feedback says why the last result was rejected.
func (s session) environment(task team.Task, results, feedback string) []string {
	env := slices.Concat(os.Environ(), s.Spec.Env, task.Env, s.Spec.Identity(), []string{"CADRE_RESULTS=" + results})
	s.Team.View(func(st *team.State) { env = append(env, st.TaskVariables(task)...) })
	if feedback != "" {
		env = append(env, "CADRE_FEEDBACK="+feedback[:min(len(feedback), 32<<10)])
	}
	return env
}

// results writes the results of the tasks that this one depends on.
func (s session) results(task team.Task) (string, error) {
	files := map[string]string{}
	s.Team.View(func(st *team.State) {
		for _, id := range task.BlockedBy {
			if before, ok := st.Task(id); ok && before.Status == team.Completed {
				files[fileName(before)] = before.Result
			}
		}
	})
	if err := os.MkdirAll(s.Spec.Scratch, 0o700); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(s.Spec.Scratch, "results-")
	if err != nil {
		return "", err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			os.RemoveAll(dir)
			return "", err
		}
	}
	return dir, nil
}

// fileName returns a name of the task that can name a file. A task from before tasks had names may
// have the id that it has in its team file.
func fileName(t team.Task) string {
	if t.Name != "" {
		return t.Name + ".md"
	}
	if id, err := strconv.Unquote(string(t.Metadata[team.FileIDKey])); err == nil && id != "" && filepath.IsLocal(id) &&
		!strings.ContainsAny(id, `/\`) {
		return id + ".md"
	}
	return t.Called() + ".md"
}
