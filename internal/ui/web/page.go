package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"cadre/internal/server/api"
)

//go:embed page
var page embed.FS

// policy is what the page may load: its own files, and the answers of its server.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// kinds are the media types of the page's files.
var kinds = map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8"}

// Page returns the handler of the page and of its files, below /assets/. They hold no data.
func (b *Board) Page() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := "index.html"
		if r.URL.Path != "/" {
			name = strings.TrimPrefix(path.Clean(r.URL.Path), "/assets/")
		}
		data, err := fs.ReadFile(page, path.Join("page", name))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Type", kinds[path.Ext(name)])
		h.Set("Cache-Control", "no-cache") // another version of cadre may answer at the same address
		tag := tags()[name]
		h.Set("ETag", tag)
		if api.Has(r, tag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Write(data)
	})
}

// tags are the entity tags of the page's files, by their names.
var tags = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	err := fs.WalkDir(page, "page", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(page, name)
		sum := sha256.Sum256(data)
		all[strings.TrimPrefix(name, "page/")] = fmt.Sprintf("%q", hex.EncodeToString(sum[:12]))
		return err
	})
	if err != nil {
		panic(err) // the files are part of the program
	}
	return all
})
