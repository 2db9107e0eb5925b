module cadre/bench

go 1.26.0

require (
	cadre v0.0.0
	github.com/mattn/go-sqlite3 v1.14.52
	github.com/segmentio/encoding v0.5.4
)

require (
	github.com/fsnotify/fsnotify v1.10.1 // indirect
	github.com/segmentio/asm v1.1.3 // indirect
	golang.org/x/sys v0.49.0 // indirect
	mvdan.cc/sh/v3 v3.14.1 // indirect
)

replace cadre => ../
