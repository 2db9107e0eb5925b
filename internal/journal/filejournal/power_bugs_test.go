package filejournal_test

import "cadre/internal/journal/filejournal"

// lie is a bug: a disk that does less than it says.
type lie struct {
	name string
	wrap func(filejournal.Disk) filejournal.Disk
}

func (l lie) to(d filejournal.Disk) filejournal.Disk {
	if l.wrap == nil {
		return d
	}
	return l.wrap(d)
}
