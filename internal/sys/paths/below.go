package paths

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Below returns the directory of a task, which is written as a path below dir. It stays below dir,
// wherever links lead.
func Below(dir, task string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	at, err := root.Stat(task)
	if failed, is := errors.AsType[*fs.PathError](err); is {
		err = failed.Err // it begins with the name of a system call
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("the directory of the task does not exist: %s", task)
	case err != nil:
		return "", fmt.Errorf("the directory of the task cannot be used: %s: %w", task, err)
	case !at.IsDir():
		return "", fmt.Errorf("the directory of the task cannot be used: %s is not a directory", task)
	}
	return filepath.Join(dir, task), nil
}
