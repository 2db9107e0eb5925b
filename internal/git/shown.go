package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// shownSettings are the settings of a repository that count for [Runner.Shown]. None of them names
// a program.
var shownSettings = []string{"core.filemode", "core.symlinks", "core.ignorecase", "core.precomposeunicode",
	"core.protecthfs", "core.protectntfs", "core.autocrlf", "core.eol", "core.checkroundtripencoding",
	"core.excludesfile", "core.attributesfile", "core.sparsecheckout", "core.sparsecheckoutcone", "core.trustctime",
	"core.checkstat", "core.bigfilethreshold", "core.longpaths", "diff.algorithm", "diff.indentheuristic"}

// shownFiles are the parts of a repository's folder that count for [Runner.Shown].
var shownFiles = []string{"objects", "refs", "packed-refs", "reftable", "shallow", "info/exclude", "info/attributes"}

// Shown returns the runner for commands that read the work tree of r.Dir, for somebody who looks at
// it. A member may have written the repository's settings, so they do not count, apart from a few
// that name no program: git runs no filter, driver, signature check or transport. Settings of the
// user that may name one do not count either. done removes what Shown made.
//
// git reads settings from the folder that worktrees share. Shown replaces that folder by one of its
// own, with links to the repository's objects and references. So a member gains nothing if it
// changes the settings while git runs.
func (r Runner) Shown(ctx context.Context) (shown Runner, done func(), err error) {
	out, err := r.Text(ctx, "rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir", "--show-toplevel")
	if err != nil {
		return r, nil, err
	}
	places := strings.Split(out, "\n")
	if len(places) != 3 {
		return r, nil, fmt.Errorf("git rev-parse says %.200q, which are not three paths", out)
	}
	own, common, top := places[0], places[1], places[2]
	list, err := r.Run(ctx, nil, "config", "--list", "-z")
	if err != nil {
		return r, nil, err
	}
	folder, err := os.MkdirTemp("", "cadre-shown-")
	if err != nil {
		return r, nil, err
	}
	done = func() { os.RemoveAll(folder) }
	format, settings := shownOf(string(list))
	if err := mirror(common, folder, format); err != nil {
		done()
		return r, nil, err
	}
	r.Settings = slices.Concat(r.Settings, settings)
	return r.With("GIT_DIR="+own, "GIT_COMMON_DIR="+folder, "GIT_WORK_TREE="+top, "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none"), done, nil
}

// mirror fills a folder with links to the files of a repository, and with settings.
func mirror(common, folder, settings string) error {
	if err := os.Mkdir(filepath.Join(folder, "info"), 0o700); err != nil {
		return err
	}
	for _, name := range shownFiles {
		file := filepath.Join(common, filepath.FromSlash(name))
		if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.Symlink(file, filepath.Join(folder, filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(folder, "config"), []byte(settings), 0o600)
}

// word is the value of an extension of the format of a repository.
var word = regexp.MustCompile(`^[a-z0-9]+$`)

// shownOf returns, of the settings that git config --list -z prints, the file with the format of
// the repository, and those of shownSettings.
func shownOf(list string) (format string, settings []string) {
	values := map[string]string{}
	for one := range strings.SplitSeq(list, "\x00") {
		if name, value, ok := strings.Cut(one, "\n"); ok { // the last one counts
			values[name] = value
		}
	}
	version := 0
	for _, name := range []string{"objectformat", "refstorage"} {
		if value := values["extensions."+name]; word.MatchString(value) {
			version = 1
			format += fmt.Sprintf("[extensions]\n\t%s = %s\n", name, value)
		}
	}
	for _, name := range shownSettings {
		if value, ok := values[name]; ok {
			settings = append(settings, name+"="+value)
		}
	}
	return fmt.Sprintf("[core]\n\trepositoryformatversion = %d\n\tbare = false\n", version) + format, settings
}
