package checkpoint

import (
	"encoding/json"
	"fmt"

	"cadre/internal/sys/crc32c"
)

// image is the part of a checkpoint that the next one needs.
type image struct {
	doc   document
	tails [2][]byte           // the newest part of each log
	from  map[string][32]byte // the digest of what each sheet was made from, if this process made it

	message string   // of the commit
	carried []string // commits of the work that the last checkpoint lacks
}

// partsIn returns how many older parts of a log a state.json lists.
func partsIn(state []byte, log int) (int, error) {
	var doc document
	err := json.Unmarshal(state, &doc)
	return doc.Logs[log].Parts, err
}

// open reads the image from the files of a checkpoint. The tails may have grown since.
func open(state []byte, tails [2][]byte) (*image, error) {
	i := &image{tails: tails}
	if err := json.Unmarshal(state, &i.doc); err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", stateFile, err)
	}
	switch {
	case i.doc.Version == "":
		return nil, fmt.Errorf("%s is not a file of cadre: it has no version", stateFile)
	case !readable(i.doc.Version):
		return nil, fmt.Errorf("%s has the version %q, and this cadre reads versions up to %s; install the cadre "+
			"that it names, or a later one", stateFile, i.doc.Version, format)
	case i.doc.TeamID == "" || i.doc.Sequence <= 0:
		return nil, fmt.Errorf("%s names no team and no record", stateFile)
	}
	for _, s := range i.doc.Sheets {
		if err := s.check(); err != nil {
			return nil, err
		}
	}
	for n := range logs {
		end := i.doc.Logs[n]
		if len(tails[n]) < end.Bytes || end.Bytes < 0 || end.Parts < 0 {
			return nil, fmt.Errorf("%s has %d bytes and should have %d", logs[n].file, len(tails[n]), end.Bytes)
		}
		i.tails[n] = tails[n][:end.Bytes:end.Bytes]
		if crc32c.Checksum(i.tails[n]) != end.CRC {
			return nil, fmt.Errorf("%s was damaged or changed by hand: its checksum is not the one in %s",
				logs[n].file, stateFile)
		}
	}
	return i, nil
}
