package disktest

import "maps"

// sectorSize is the number of bytes that a disk writes atomically.
const sectorSize = 512

// node is a file or a folder. The disk's mutex guards it.
type node struct {
	number int

	// Of a file.
	now, safe []byte // safe is never modified in place
	since     []change
	failures  int  // number of failed syncs
	told      bool // the last failure was reported to some file
	locks     map[*file]int

	// Of a folder; nil in a file.
	names, safeNames map[string]*node
	renamed          []naming
}

// change is the effect of one write or truncation: the resulting length, and the changed sectors.
type change struct {
	size    int
	sectors []sector
}

type sector struct {
	index int
	data  [sectorSize]byte
}

// naming is a change of a folder: the name from is removed, and the name to refers to the node of.
// Either name may be empty.
type naming struct {
	from, to string
	of       *node
}

func (n *node) write(b []byte, off int) {
	if grow := off + len(b) - len(n.now); grow > 0 {
		n.now = append(n.now, make([]byte, grow)...)
	}
	copy(n.now[off:], b)
	n.changed(off, off+len(b))
}

func (n *node) truncate(size int) {
	old := len(n.now)
	if size > old {
		n.now = append(n.now, make([]byte, size-old)...)
	} else {
		clear(n.now[size:])
		n.now = n.now[:size]
	}
	n.changed(size, max(old, size))
}

// changed records that the bytes between from and to have changed.
func (n *node) changed(from, to int) {
	c := change{size: len(n.now)}
	for i := from / sectorSize; i*sectorSize < to; i++ {
		s := sector{index: i}
		if begin := i * sectorSize; begin < len(n.now) {
			copy(s.data[:], n.now[begin:])
		}
		c.sectors = append(c.sectors, s)
	}
	n.since = append(n.since, c)
}

func (n *node) sync() {
	if len(n.since) > 0 {
		n.safe = build(n.safe, n.since, n.since[len(n.since)-1].size, 0)
		n.since = nil
	}
}

// fail performs a failed sync.
func (n *node) fail(choose Choose) {
	// The length is not in the page cache, and is written with the next sync at the latest.
	kept := change{size: len(n.now)}
	for _, states := range n.touched() {
		if len(states) > 0 && choose(2) == 1 {
			kept.sectors = append(kept.sectors, states[len(states)-1])
		}
	}
	n.safe = build(n.safe, []change{kept}, min(len(n.safe), len(n.now)), 0)
	n.since = []change{{size: len(n.now)}}
	n.failures++
	n.told = false
}

// touched returns the states of each sector since the last sync.
func (n *node) touched() [][]sector {
	var all [][]sector
	for _, c := range n.since {
		for _, s := range c.sectors {
			for len(all) <= s.index {
				all = append(all, nil)
			}
			all[s.index] = append(all[s.index], s)
		}
	}
	return all
}

// build returns the content after applying changes to safe, with size bytes. Bytes that no process
// wrote have the value fill.
func build(safe []byte, changes []change, size int, fill byte) []byte {
	room := max(size, len(safe))
	for _, c := range changes {
		for _, s := range c.sectors {
			room = max(room, (s.index+1)*sectorSize)
		}
	}
	b := make([]byte, room)
	copy(b, safe)
	if fill != 0 {
		for i := len(safe); i < room; i++ {
			b[i] = fill
		}
	}
	for _, c := range changes {
		for _, s := range c.sectors {
			copy(b[s.index*sectorSize:], s.data[:])
		}
	}
	return b[:size:size]
}

// mood is a strategy for losing unsafe changes.
type mood int

const (
	allLost mood = iota
	allKept
	inOrder  // the first few changes
	anything // any outcome that a disk may have
	each     // a separate mood for each file and folder
	moods
)

func (m mood) of(choose Choose) mood {
	if m == each {
		return mood(choose(int(each)))
	}
	return m
}

// lose returns the content of a file after a power loss.
func (n *node) lose(m mood, choose Choose) []byte {
	if len(n.since) == 0 {
		return n.safe
	}
	kept := n.since
	switch m.of(choose) {
	case allLost:
		return n.safe
	case allKept:
	case inOrder:
		kept = kept[:choose(len(kept)+1)]
		if len(kept) == 0 {
			return n.safe
		}
	case anything:
		return n.loseAny(choose)
	}
	return build(n.safe, kept, kept[len(kept)-1].size, 0)
}

// loseAny takes each sector and the length from any state since the last sync.
func (n *node) loseAny(choose Choose) []byte {
	var kept change
	for _, states := range n.touched() {
		if v := choose(len(states) + 1); v > 0 {
			kept.sectors = append(kept.sectors, states[v-1])
		}
	}
	sizes := []int{len(n.safe)}
	for _, c := range n.since {
		sizes = append(sizes, c.size)
	}
	at := choose(len(sizes))
	size := sizes[at]
	if at > 0 && choose(2) == 1 { // a length between two states
		a, b := min(sizes[at-1], size), max(sizes[at-1], size)
		size = a + choose(b-a+1)
	}
	rubbish := [...]byte{0, '}', 0xff}
	return build(n.safe, []change{kept}, size, rubbish[choose(len(rubbish))])
}

func (n *node) rename(from, to string, of *node) {
	apply(n.names, naming{from, to, of})
	n.renamed = append(n.renamed, naming{from, to, of})
}

func apply(names map[string]*node, r naming) {
	if r.from != "" && (r.to == "" || names[r.from] == r.of) {
		delete(names, r.from)
	}
	if r.to != "" {
		names[r.to] = r.of
	}
}

func (n *node) syncNames() {
	if len(n.renamed) > 0 {
		n.safeNames, n.renamed = maps.Clone(n.names), nil
	}
}

// namesLeft returns the names of a folder after a power loss.
func (n *node) namesLeft(m mood, choose Choose) map[string]*node {
	if len(n.renamed) == 0 {
		return n.safeNames
	}
	left := maps.Clone(n.safeNames)
	kept := len(n.renamed)
	m = m.of(choose)
	switch m {
	case allLost:
		kept = 0
	case inOrder:
		kept = choose(kept + 1)
	}
	for _, r := range n.renamed[:kept] {
		if m != anything || choose(2) == 1 {
			apply(left, r)
		}
	}
	return left
}
