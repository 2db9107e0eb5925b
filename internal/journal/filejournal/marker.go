package filejournal

import (
	"fmt"
	"strconv"
	"strings"

	"cadre/internal/sys/crc32c"
)

// marker is the file "durable". Its first line has a fixed width: "durable", a seq of 20 digits,
// and the CRC-32C of both in 8 digits. Its second line binds it to its journal: "journal", the
// quoted id, and the CRC-32C of both. A marker of an older version has only the first line. Both
// lines are written at once. The first line fits one sector, and no write changes the second line
// of a bound marker or its length. Its flock is the sync lock.
type marker struct {
	f  File
	id string // of the journal; a marker bound to another one guarantees nothing
}

// marked is the content of a marker.
type marked struct {
	seq     int64  // every record up to this one is durable
	journal string // id of the journal; "" if the marker has none
}

// markerEvery is the number of bytes of a segment between two syncs of the marker. After a power
// loss the marker may be behind by that much: some eight hundred records.
const markerEvery = 256 << 10

// maxMarker is the maximum length of a marker in bytes.
const maxMarker = 4 << 10

const (
	markedLen   = len("durable 00000000000000000000 00000000\n")
	markedIDKey = "journal "
	markedSum   = len(" 00000000\n")
)

// formatMarker returns the content of a marker. Without an id, it is in the older version.
func formatMarker(id string, seq int64) []byte {
	b := summed(fmt.Appendf(nil, "durable %020d", seq), 0)
	if id == "" {
		return b
	}
	return summed(strconv.AppendQuoteToASCII(append(b, markedIDKey...), id), len(b))
}

// summed ends the line that begins at start with its checksum and a newline.
func summed(b []byte, start int) []byte {
	return fmt.Appendf(b, " %08x\n", crc32c.Checksum(b[start:]))
}

// cutSum removes the checksum and the newline from a line; ok is false if the checksum does not
// match.
func cutSum(line []byte) (text string, ok bool) {
	at := len(line) - markedSum
	if at < 0 || line[at] != ' ' || line[len(line)-1] != '\n' {
		return "", false
	}
	sum, err := strconv.ParseUint(string(line[at+1:len(line)-1]), 16, 32)
	return string(line[:at]), err == nil && uint32(sum) == crc32c.Checksum(line[:at])
}

// load reads the marker. Without the sync lock, a read may see a half-done write, so load retries a
// few times. The error says what cannot be read. If only the second line is bad, said holds the
// content of the first.
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

// read returns the seq up to which all records are known to be durable; ok is false if the marker
// is missing, unreadable or of another journal. A marker with a bad second line is trusted: a power
// loss may leave it so when the marker is bound for the first time.
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
	errNoMarker markerError = "the marker of durable records cannot be read"
	errUnbound  markerError = "the marker of durable records does not name its journal"
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

// write stores seq. The caller holds the sync lock and has synced the records up to seq.
func (m marker) write(seq int64) error {
	_, err := m.f.WriteAt(formatMarker(m.id, seq), 0)
	return err
}
