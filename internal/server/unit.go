package server

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"cadre/internal/sys/atomicfile"
)

// Unit is a file with which the system starts the server.
type Unit struct {
	Path  string `json:"path"`  // where the file is
	Text  string `json:"text"`  // what is in it
	Start string `json:"start"` // command that starts the server, now and at each login
}

// UnitOf returns the unit of this system, systemd or launchd, for a command line and its
// environment.
func UnitOf(words, env []string) (Unit, error) {
	user, err := os.UserHomeDir()
	if err != nil {
		return Unit{}, err
	}
	if runtime.GOOS == "darwin" {
		return launchd(user, words, env), nil
	}
	return systemd(user, words, env), nil
}

// Write writes the unit.
func (u Unit) Write() error {
	if err := os.MkdirAll(filepath.Dir(u.Path), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(u.Path, []byte(u.Text))
}

// systemd returns the unit of a user's systemd. The hosts of teams stay when the server crashes or
// is restarted.
func systemd(user string, words, env []string) Unit {
	config := os.Getenv("XDG_CONFIG_HOME")
	if config == "" {
		config = filepath.Join(user, ".config")
	}
	var b strings.Builder
	b.WriteString("[Unit]\nDescription=cadre keeps teams of coding agents running\n\n[Service]\n")
	for _, one := range env {
		fmt.Fprintf(&b, "Environment=%s\n", unitWord(one))
	}
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = strings.ReplaceAll(unitWord(w), "$", "$$") // ExecStart also expands variables
	}
	fmt.Fprintf(&b, "ExecStart=%s\n", strings.Join(quoted, " "))
	b.WriteString("Restart=on-failure\nKillMode=process\nTimeoutStopSec=30\n\n[Install]\nWantedBy=default.target\n")
	return Unit{filepath.Join(config, "systemd", "user", "cadre.service"), b.String(),
		"systemctl --user enable --now cadre"}
}

// unitWord quotes a word for a systemd unit: see systemd.syntax(7), Quoting.
func unitWord(s string) string {
	s = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "\n", `\n`).Replace(s)
	return `"` + s + `"`
}

// launchd returns the property list of a user's launchd.
func launchd(user string, words, env []string) Unit {
	const label = "cadre.serve"
	text := func(s string) string {
		var b bytes.Buffer
		xml.EscapeText(&b, []byte(s))
		return b.String()
	}
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key><string>` + label + `</string>
	<key>ProgramArguments</key>
	<array>
`)
	for _, w := range words {
		b.WriteString("\t\t<string>" + text(w) + "</string>\n")
	}
	b.WriteString("\t</array>\n\t<key>EnvironmentVariables</key>\n\t<dict>\n")
	for _, one := range env {
		name, value, _ := strings.Cut(one, "=")
		b.WriteString("\t\t<key>" + text(name) + "</key><string>" + text(value) + "</string>\n")
	}
	b.WriteString(`	</dict>
	<key>RunAtLoad</key><true/>
	<key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
	<key>AbandonProcessGroup</key><true/>
	<key>ExitTimeOut</key><integer>30</integer>
</dict>
</plist>
`)
	path := filepath.Join(user, "Library", "LaunchAgents", label+".plist")
	return Unit{path, b.String(), "launchctl bootstrap gui/$(id -u) " + path}
}
