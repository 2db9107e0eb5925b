package teamfile

import _ "embed"

// Schema is the JSON Schema (draft 2020-12) of a team file, for editors. It has each key with its
// type and its values. Only [Parse] checks what must fit together, such as owners and members.
// docs/team-files.md is made from it.
//
//go:embed schema.json
var Schema string
