package teamfile

// SetDigest lets a test compare a whole File.
func (f *File) SetDigest(digest string) { f.digest = digest }

// Place says what may stand below a key: nothing, a command, its own keys, or a value.
func Place(key string) string {
	return [...]string{"nothing", "command", "keys", "value"}[placeOf(key)]
}
