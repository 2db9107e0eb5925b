package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// metadataFlag adds --metadata, which may be repeated.
func metadataFlag(c *cobra.Command, words *[]string, what string) {
	c.Flags().StringArrayVar(words, "metadata", nil, what+", as KEY=VALUE or a JSON object; a VALUE is JSON, "+
		"or else text; may be repeated")
}

// metadataOf parses the values of --metadata. If a key has two values, the later one counts.
func metadataOf(words []string) (map[string]json.RawMessage, error) {
	var all map[string]json.RawMessage
	for _, word := range words {
		if word == "" {
			continue
		}
		one := map[string]json.RawMessage{}
		if strings.HasPrefix(strings.TrimSpace(word), "{") {
			if err := json.Unmarshal([]byte(word), &one); err != nil {
				return nil, usage{fmt.Errorf("--metadata %s is not a JSON object: %w", word, err)}
			}
		} else {
			key, value, found := strings.Cut(word, "=")
			if !found || key == "" {
				return nil, usage{fmt.Errorf("--metadata takes KEY=VALUE, such as ticket=7, or a JSON object, not %q",
					word)}
			}
			raw := json.RawMessage(value)
			if !json.Valid(raw) {
				var err error
				if raw, err = json.Marshal(value); err != nil {
					return nil, err
				}
			}
			one[key] = raw
		}
		if all == nil {
			all = one
			continue
		}
		maps.Copy(all, one)
	}
	return all, nil
}

// metadataWords returns metadata as a person types it after --metadata: KEY=VALUE, sorted.
func metadataWords(all map[string]json.RawMessage) string {
	var words []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		words = append(words, key+"="+string(all[key]))
	}
	return strings.Join(words, " ")
}
