package postgrestest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// binaries returns the folder with the programs of a server.
func binaries() (string, error) {
	var folders []string
	if config, err := exec.LookPath("pg_config"); err == nil {
		if out, err := exec.Command(config, "--bindir").Output(); err == nil {
			folders = append(folders, strings.TrimSpace(string(out)))
		}
	}
	if server, err := exec.LookPath("postgres"); err == nil {
		folders = append(folders, filepath.Dir(server))
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin"} {
		found, _ := filepath.Glob(pattern)
		slices.Reverse(found) // the newest version first, of those with as many digits
		folders = append(folders, found...)
	}
	for _, folder := range folders {
		if complete(folder) {
			return folder, nil
		}
	}
	return "", errors.New("there is no PostgreSQL server on this machine, and " + Variable + " has no address of one")
}

func complete(folder string) bool {
	for _, program := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(folder, program)); err != nil {
			return false
		}
	}
	return true
}

// account is the user that a server runs as; nil for the user of the tests.
type account struct{ uid, gid int }

func serverAccount() (*account, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(u.Uid)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.Atoi(u.Gid)
		if err != nil {
			return nil, err
		}
		return &account{uid, gid}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody")
}

// command returns a command that runs as the account, in a process group of its own.
func (a *account) command(dir, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if a != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	// Nothing of the person's environment may choose another server, another locale or time zone.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC", "HOME=" + dir}
	return cmd
}

// prefix begins the names of the folders of servers. The pid of the test process follows.
const prefix = "cadre-pg-"

// parent is where the folders are. Their paths must be short enough for a socket.
func parent() string {
	dir := os.TempDir()
	if len(dir)+len("/"+prefix+"1234567-1234567890/.s.PGSQL.5432") > 100 {
		return "/tmp"
	}
	return dir
}

// folder makes a new folder for a server that the account owns.
func (a *account) folder() (string, error) {
	dir, err := os.MkdirTemp(parent(), fmt.Sprintf("%s%d-", prefix, os.Getpid()))
	if err != nil || a == nil {
		return dir, err
	}
	return dir, os.Chown(dir, a.uid, a.gid)
}

// sweep removes the folders of test processes that were killed.
func sweep() {
	found, _ := filepath.Glob(filepath.Join(parent(), prefix+"*-*"))
	for _, dir := range found {
		word, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), prefix), "-")
		if pid, err := strconv.Atoi(word); err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			_ = os.RemoveAll(dir)
		}
	}
}

// run runs a command to its end. Its error has the output.
func run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, out)
	}
	return nil
}
