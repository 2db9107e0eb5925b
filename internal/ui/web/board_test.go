package web

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"cadre/internal/server/api"
)

// TestBoardDescribed: the description has the addresses of the page's data, and no others.
func TestBoardDescribed(t *testing.T) {
	var described []string
	for _, b := range api.Besides() {
		if strings.HasPrefix(b.Path, "/board/") && !strings.HasPrefix(b.ID, "open") {
			described = append(described, b.Pattern())
		}
	}
	slices.Sort(described)
	if is := slices.Sorted(maps.Keys((&Board{}).routes())); !slices.Equal(is, described) {
		t.Errorf("the page's data is at\n%s\nand described is\n%s", strings.Join(is, "\n"),
			strings.Join(described, "\n"))
	}
}
