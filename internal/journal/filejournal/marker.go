package filejournal

import (
	"fmt"
	"strconv"
	"strings"

	"cadre/internal/sys/crc32c"
)

// marker is the file "durable". Its first line has a fixed width: "durable", a seq in 20 digits,
// the CRC-32C of both in 8. Its second line binds it to its journal: "journal", the id in quotes,
// the CRC-32C of both. A marker of an older version has the first line alone. Both lines are
// written at once. The first one fits one sector, and no write changes the length of a bound marker
// or its second line. Its flock is the sync lock.
type marker struct {
	f  File
	id string // of the journal; a marker bound to another one vouches for nothing
}

// marked is what a marker says.
type marked struct {
	seq     int64  // every record up to this one is durable
	journal string // whose records; "" where the marker does not say
}

// markerEvery is how many bytes of a segment there are from one sync of the marker to the next: so
// many records, some eight hundred, may the marker be behind after a loss of power.
const markerEvery = 256 << 10

// maxMarker is the length in bytes of the longest marker.
const maxMarker = 4 << 10

const (
	markedLen   = len("durable 00000000000000000000 00000000\n")
	markedIDKey = "journal "
	markedSum   = len(" 00000000\n")
)

// formatMarker returns a marker; without an id it is one of the older version.
func formatMarker(id string, seq int64) []byte {
	b := summed(fmt.Appendf(nil, "durable %020d", seq), 0)
	if id == "" {
		return b
	}
	return summed(strconv.AppendQuoteToASCII(append(b, markedIDKey...), id), len(b))
}

// summed ends the line that begins at start with its checksum.
func summed(b []byte, start int) []byte {
	return fmt.Appendf(b, " %08x\n", crc32c.Checksum(b[start:]))
}

// cutSum takes the checksum off a line, newline included; ok is false where it does not match.
func cutSum(line []byte) (text string, ok bool) {
	at := len(line) - markedSum
	if at < 0 || line[at] != ' ' || line[len(line)-1] != '\n' {
		return "", false
	}
	sum, err := strconv.ParseUint(string(line[at+1:len(line)-1]), 16, 32)
	return string(line[:at]), err == nil && uint32(sum) == crc32c.Checksum(line[:at])
}

// load reads the marker. Without the sync lock a read may fall into a write, so it is tried again a
// few times. The error says what cannot be read; where only the second line is bad, said has what
// the first one says.
func (m marker) load() (said marked, err error) {
	if m.f == nil {
		return said, errNoMarker
	}
	var buf [maxMarker + 1]byte
	for range 5 {
		n, _ := pread(m.f, buf[:], 0)
		if said, err = parseMarker(buf[:n]); err == nil {
			return said, nil
		}
	}
	return said, err
}

// read returns the seq up to which all is known to be durable; ok is false where the marker is
// missing, unreadable or of another journal. A marker whose second line is bad vouches for its
// journal: a loss of power may leave it so when it is bound for the first time.
func (m marker) read() (seq int64, ok bool) {
	said, err := m.load()
	if err != nil && err != errUnbound || said.journal != "" && said.journal != m.id {
		return 0, false
	}
	return said.seq, true
}

type markerError string

func (e markerError) Error() string { return string(e) }

const (
	errNoMarker markerError = "the marker of what is durable cannot be read"
	errUnbound  markerError = "the marker of what is durable does not say of which journal it is"
)

func parseMarker(b []byte) (said marked, err error) {
	if len(b) < markedLen {
		return said, errNoMarker
	}
	line, ok := cutSum(b[:markedLen])
	digits, ok2 := strings.CutPrefix(line, "durable ")
	seq, err := strconv.ParseUint(digits, 10, 63)
	if !ok || !ok2 || err != nil {
		return said, errNoMarker
	}
	said.seq = int64(seq)
	if len(b) == markedLen {
		return said, nil
	}
	line, ok = cutSum(b[markedLen:])
	quoted, ok2 := strings.CutPrefix(line, markedIDKey)
	id, err := strconv.Unquote(quoted)
	if !ok || !ok2 || err != nil || id == "" {
		return said, errUnbound
	}
	said.journal = id
	return said, nil
}

// write may be called only with the sync lock held and only after the sync that makes seq true.
func (m marker) write(seq int64) error {
	_, err := m.f.WriteAt(formatMarker(m.id, seq), 0)
	return err
}
