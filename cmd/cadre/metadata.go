package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// metaFlag adds --meta, which may be repeated.
func metaFlag(c *cobra.Command, meta *[]string, what string) {
	c.Flags().StringArrayVar(meta, "meta", nil, what+", as KEY=VALUE; a VALUE that is JSON is kept as it is, and any "+
		"other as text; may be repeated")
}

// metadataOf parses the values of --meta.
func metadataOf(words []string) (map[string]json.RawMessage, error) {
	var all map[string]json.RawMessage
	for _, word := range words {
		key, value, found := strings.Cut(word, "=")
		if !found || key == "" {
			return nil, usage{fmt.Errorf("--meta takes KEY=VALUE, such as ticket=7, not %q", word)}
		}
		raw := json.RawMessage(value)
		if !json.Valid(raw) {
			var err error
			if raw, err = json.Marshal(value); err != nil {
				return nil, err
			}
		}
		if all == nil {
			all = map[string]json.RawMessage{}
		}
		all[key] = raw
	}
	return all, nil
}
