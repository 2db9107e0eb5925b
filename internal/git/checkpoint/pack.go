package checkpoint

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/regularfile"
)

// Each checkpoint leaves a few loose objects. At some thousands, git would pack them in the middle
// of a person's command, with all other objects of the repository. So this package packs them, and
// packs no other objects.
const (
	packEvery = 64 // checkpoints between two packs of cadre
	mostPacks = 8  // packs of cadre before they are joined into one
)

// packing is what this process knows about packs.
type packing struct {
	every   int // checkpoints; 0 for packEvery
	counted bool
	since   int // checkpoints since the last pack
}

// packsFile lists the packs with objects of a team's checkpoints, one per line: the name, and the
// last checkpoint in it.
func (b *branch) packsFile() string {
	return filepath.Join(b.repo, "cadre-packs", strings.TrimPrefix(b.name, "cadre/"))
}

// pack packs the objects of checkpoints once there are enough. It removes only objects that are in
// a pack. If it fails or is killed, the next call finishes the job.
func (b *branch) pack(ctx context.Context, tip string) {
	packs := b.packs()
	if !b.packed.counted {
		since := ""
		if len(packs) > 0 {
			since = packs[len(packs)-1].tip
		}
		b.packed.counted, b.packed.since = true, b.between(ctx, since, tip)
	} else {
		b.packed.since++
	}
	if b.packed.since < cmp.Or(b.packed.every, packEvery) {
		return
	}
	b.packed.since = 0
	lock, err := filelock.New(b.packsFile() + ".lock")
	if err != nil {
		if os.MkdirAll(filepath.Dir(b.packsFile()), 0o755) != nil {
			return
		}
		if lock, err = filelock.New(b.packsFile() + ".lock"); err != nil {
			return // another process packs
		}
	}
	defer lock.Unlock()
	b.packNow(ctx, b.packs(), tip)
}

// between returns how many checkpoints there are from one to the other. If from is "" or missing,
// it counts all.
func (b *branch) between(ctx context.Context, from, to string) int {
	args := []string{"rev-list", "--count", "--first-parent", fmt.Sprint("--max-count=", packEvery), to}
	if from != "" {
		args = append(args, "^"+from)
	}
	out, err := b.git.Text(ctx, args...)
	if err != nil && from != "" {
		return b.between(ctx, "", to)
	}
	n := 0
	fmt.Sscan(out, &n)
	return n
}

// onePack is a pack of cadre.
type onePack struct{ name, tip string }

// mostOfPack bounds what is read of a list or an index of packs, in bytes.
const mostOfPack = 1 << 30

func (b *branch) packs() (all []onePack) {
	text, err := regularfile.Read(b.packsFile(), mostOfPack)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 2 && strings.Trim(fields[0]+fields[1], "0123456789abcdef") == "" {
			all = append(all, onePack{fields[0], fields[1]})
		}
	}
	return all
}

func (b *branch) packFile(name, ending string) string {
	return filepath.Join(b.repo, "objects", "pack", "pack-"+name+ending)
}

// packNow packs the objects of the checkpoints since the last pack. If there are many packs, it
// packs their objects too.
func (b *branch) packNow(ctx context.Context, packs []onePack, tip string) {
	packs = slices.DeleteFunc(packs, func(p onePack) bool { // git has repacked the repository meanwhile
		_, err := os.Stat(b.packFile(p.name, ".idx"))
		return err != nil
	})
	ids, err := b.made(ctx, packs, tip)
	if err != nil || len(ids) == 0 {
		return
	}
	loose := slices.Clone(ids)
	var old []onePack
	if len(packs) >= mostPacks {
		for _, p := range packs {
			index, err := regularfile.Read(b.packFile(p.name, ".idx"), mostOfPack)
			if err != nil {
				return
			}
			out, err := b.git.Run(ctx, index, "show-index")
			if err != nil {
				return
			}
			for line := range strings.Lines(string(out)) { // offset, id, checksum
				if fields := strings.Fields(line); len(fields) > 1 {
					ids = append(ids, fields[1])
				}
			}
		}
		old, packs = packs, nil
	}
	out, err := b.git.Run(ctx, []byte(strings.Join(ids, "\n")+"\n"), "pack-objects", "--quiet",
		filepath.Join(b.repo, "objects", "pack", "pack"))
	if err != nil {
		return
	}
	name := strings.TrimSpace(string(out))
	packs = append(packs, onePack{name, tip})
	var text bytes.Buffer
	for _, p := range packs {
		fmt.Fprintf(&text, "%s %s\n", p.name, p.tip)
	}
	if atomicfile.Replace(b.packsFile(), text.Bytes(), atomicfile.Passing{Mode: 0o644}) != nil {
		return
	}
	for _, id := range loose {
		os.Remove(filepath.Join(b.repo, "objects", id[:2], id[2:]))
	}
	for _, p := range old {
		if p.name == name {
			continue
		}
		// remove the index first: git ignores a pack without one
		for _, ending := range []string{".idx", ".rev", ".bitmap", ".pack"} {
			os.Remove(b.packFile(p.name, ending))
		}
	}
}

// made returns the objects that checkpoints since the last pack have made: their own commits and
// trees, and the snapshots of the shared directory. It leaves out commits of members and of the
// person.
func (b *branch) made(ctx context.Context, packs []onePack, tip string) ([]string, error) {
	from := []string{"--first-parent", tip}
	if len(packs) > 0 {
		from = append(from, "^"+packs[len(packs)-1].tip)
	}
	out, err := b.git.Run(ctx, nil, append([]string{"rev-list", "--parents"}, from...)...)
	if err != nil && len(packs) > 0 { // that checkpoint no longer exists
		return b.made(ctx, nil, tip)
	}
	if err != nil {
		return nil, err
	}
	var carried []string
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) > 2 {
			carried = append(carried, fields[2:]...)
		}
	}
	ids, err := b.git.Run(ctx, nil, append([]string{"rev-list", "--objects", "--no-object-names"}, from...)...)
	if err != nil || len(carried) == 0 {
		return strings.Fields(string(ids)), err
	}
	said, err := b.git.Run(ctx, []byte(strings.Join(carried, "\n")+"\n"), "log", "--no-walk=unsorted", "--stdin",
		"--format=%H %P %s")
	if err != nil {
		return nil, err
	}
	var ours bytes.Buffer
	for line := range strings.Lines(string(said)) {
		commits, _, shared := strings.Cut(line, " "+b.sharedSubject())
		if id, parent, _ := strings.Cut(commits, " "); shared {
			ours.WriteString(id + "\n")
			if parent != "" {
				ours.WriteString("^" + parent + "\n")
			}
		}
	}
	more, err := b.git.Run(ctx, ours.Bytes(), "rev-list", "--objects", "--no-object-names", "--stdin")
	all := append(strings.Fields(string(ids)), strings.Fields(string(more))...)
	slices.Sort(all)
	return slices.Compact(all), err
}
