package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"cadre/internal/proc"
)

// ErrTooMuch says that more would have to be read than anybody wants to wait for.
var ErrTooMuch = errors.New("the files that are not committed have too many bytes to be read")

// Digest is a checksum of what is there at the path, its kind with it; "" where there is nothing. What it reads is taken off most, and when that does not
// suffice the error is [ErrTooMuch].
func Digest(ctx context.Context, procs *proc.Register, path string, most *int64) (string, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	switch mode := info.Mode(); {
	case mode.IsRegular():
		if *most -= info.Size(); *most < 0 {
			return "", ErrTooMuch
		}
		fmt.Fprintf(sum, "file %t\n", mode&0o111 != 0)
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer f.Close()
		if _, err := io.Copy(sum, f); err != nil {
			return "", err
		}
	case mode&fs.ModeSymlink != 0:
		to, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "link %s", to)
	case mode.IsDir():
		head, _ := in(procs, path).Text(ctx, "rev-parse", "HEAD") // one that has none has none the next time too
		fmt.Fprintf(sum, "repository %s", head)
	default:
		fmt.Fprintf(sum, "%s", mode.Type())
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
