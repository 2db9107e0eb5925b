package filejournal

// What the tests need to make files as they may be found.
var (
	SyncData     = syncData
	FormatMarker = formatMarker
	SegmentName  = segmentName
	AppendRecord = appendRecord
	AppendLine   = appendLine
)

// KeyHeader is the first key of a segment's header.
const KeyHeader = keyHeader

// ParseParts is parseLine, taken apart.
func ParseParts(line []byte) (key string, n int64, rest []byte, bad string) {
	f, bad := parseLine(line)
	return string(f.key), f.n, f.rest, bad
}

// Check and Mend on a disk of the test's.
var (
	CheckOn = check
	MendOn  = mend
)

// ParseMarker returns what a marker says.
func ParseMarker(b []byte) int64 {
	said, _ := parseMarker(b)
	return said.seq
}

// Header returns the first line of a team's first segment.
func Header(team string) []byte { return appendHeader(nil, header{Team: team, First: 1}) }
