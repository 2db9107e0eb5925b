package worktree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"cadre/internal/git"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/regularfile"
)

// ErrTooMuch reports that too many bytes would have to be read.
var ErrTooMuch = errors.New("the files that are not committed have too many bytes to be read")

// Digest returns a checksum of the file at the path, with its kind, or "". It subtracts what it
// reads from most. If that is not enough, it returns [ErrTooMuch].
func Digest(ctx context.Context, procs *proc.Register, path string, most *int64) (string, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		if *most -= info.Size(); *most < 0 {
			return "", ErrTooMuch
		}
		f, err := regularfile.Open(path)
		if err != nil {
			return "", err
		}
		defer f.Close()
		return digest(fileKind(mode&0o111 != 0), f)
	case mode&fs.ModeSymlink != 0:
		to, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		return digest(linkKind, strings.NewReader(to))
	case mode.IsDir():
		// without one, the digest stays the same the next time
		head, _ := in(procs, path).Text(ctx, "rev-parse", "HEAD")
		return digest(repositoryKind, strings.NewReader(head))
	default:
		return digest(mode.Type().String(), strings.NewReader(""))
	}
}

// Committed returns the [Digest] of the commit's file at the path from dir, the top of a work tree,
// as it would be there; "" if the commit has none.
func Committed(ctx context.Context, procs *proc.Register, dir, commit, path string) (string, error) {
	g := in(procs, dir)
	out, err := g.Text(ctx, "ls-tree", "-z", commit, "--", path)
	if err != nil {
		return "", err
	}
	fields := strings.Fields(out) // mode, type, object, path
	if len(fields) < 4 {
		return "", nil
	}
	mode, object := fields[0], fields[2]
	kind, read := fileKind(mode == "100755"), []string{"cat-file", "--filters", "--path=" + path, object}
	switch mode {
	case git.Submodule:
		return digest(repositoryKind, strings.NewReader(object))
	case "120000":
		kind, read = linkKind, []string{"cat-file", "blob", object}
	}
	data, err := g.Run(ctx, nil, read...)
	if err != nil {
		return "", err
	}
	return digest(kind, bytes.NewReader(data))
}

// These are the beginnings of digests.
const (
	linkKind       = "link "
	repositoryKind = "repository "
)

func fileKind(executable bool) string { return fmt.Sprintf("file %t\n", executable) }

func digest(kind string, content io.Reader) (string, error) {
	sum := sha256.New()
	io.WriteString(sum, kind)
	if _, err := io.Copy(sum, content); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
