package filejournal

// Functions with which tests build valid and damaged files.
var (
	SyncData     = syncData
	FormatMarker = formatMarker
	SegmentName  = segmentName
	AppendRecord = appendRecord
	AppendLine   = appendLine
)

// KeyHeader is the first key of a segment's header.
const KeyHeader = keyHeader

// ParseParts is parseLine with separate results.
func ParseParts(line []byte) (key string, n int64, rest []byte, bad string) {
	f, bad := parseLine(line)
	return string(f.key), f.n, f.rest, bad
}

// Check and Mend for a given disk.
var (
	CheckOn = check
	MendOn  = mend
)

// ParseMarker returns the seq of a marker.
func ParseMarker(b []byte) int64 {
	said, _ := parseMarker(b)
	return said.seq
}

// Header returns the first line of a team's first segment.
func Header(team string) []byte { return appendHeader(nil, header{Team: team, First: 1}) }
