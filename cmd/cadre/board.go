package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"rsc.io/qr"

	"cadre/internal/access"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/server"
	"cadre/internal/team"
)

// boarding has the options of one call of cadre board.
type boarding struct {
	*app
	only  bool   // print the address
	phone string // address by which a phone reaches the server
	token string // token whose role the browser gets
}

func (a *app) boardCommand() *cobra.Command {
	b := &boarding{app: a}
	c := &cobra.Command{
		Use: "board [TEAM]", Short: "See and steer teams in a browser", Args: atMost(1),
		Long: `Open the board in your browser: all teams, or one. It shows what the screen of cadre watch shows, any
moment of the past too, and you can answer, write and steer from it. A server answers the browser, on 127.0.0.1 alone.
If none is running, it is started in the background; cadre serve --stop stops it.

The address has a code that logs one browser in, once, within a minute. The browser then stays logged in until the
server stops.

--phone prints a QR code for another device. Name the address by which that device reaches this machine: the one of a
tunnel, or of the server on your own network, which needs TLS. The server must have been started with that --host.`,
		Example: "  cadre board\n  cadre board my-team\n  cadre board --phone https://my-tunnel.example",
		RunE:    func(c *cobra.Command, args []string) error { return b.run(c.Context(), args) },
	}
	f := c.Flags()
	f.BoolVar(&b.only, "print", false, "print the address, and open no browser")
	f.StringVar(&b.phone, "phone", "", "print a QR code with this address, for a phone")
	f.StringVar(&b.token, "token", "", "name of the token whose role the browser gets (default admin)")
	c.MarkFlagsMutuallyExclusive("print", "phone")
	return c
}

func (b *boarding) run(ctx context.Context, args []string) error {
	shown := ""
	if len(args) > 0 {
		of, err := b.engine().Glance(ctx, args[0])
		if err != nil {
			return err
		}
		shown = of.ID
	}
	at := ""
	if b.phone != "" {
		var err error
		if at, err = server.Address(b.phone); err != nil {
			return err
		}
	}
	serve := []string{self(), "serve", "--listen", "127.0.0.1:0"}
	if err := server.Start(ctx, b.home, serve, b.home.ForOurs(access.Unnamed(os.Environ()))); err != nil {
		return err
	}
	is, err := server.LogIn(ctx, b.home, at, b.token, shown)
	if errors.Is(err, server.ErrNoPage) {
		return withWays(team.Refuse(team.NotReady, "%v", err), way{"stop it", "cadre serve --stop"},
			way{"start one that does", "cadre serve --listen 127.0.0.1:0"})
	}
	if team.CodeOf(err) == team.NotReady && at != "" {
		return withWays(err, way{"stop it", "cadre serve --stop"},
			way{"start one that does", render.Typed("serve", "--listen", "127.0.0.1:7433", "--host", at)})
	}
	switch {
	case err != nil:
		return err
	case b.phone != "":
		return b.print(is, func(w *sanitize.Writer) error { return printQR(w, is.Address) })
	case b.only || b.json || undrawn():
		return b.print(is, func(w *sanitize.Writer) error { return w.Printf("%s\n", is.Address) })
	}
	other := render.Typed("board", append(args, "--print")...)
	if err := server.Browse(b.home, is.Address); err != nil {
		return withWays(fmt.Errorf("no browser can be opened here: %w", err), way{"print the address", other})
	}
	return b.out.Printf("your browser opens the board; if it does not: %s\n", other)
}

// undrawn reports whether this machine shows no windows, so that it can open no browser.
func undrawn() bool {
	return runtime.GOOS == "linux" && os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" &&
		os.Getenv("WSL_DISTRO_NAME") == ""
}

// printQR prints the address, and a QR code of it with two rows of points in a line.
func printQR(w *sanitize.Writer, address string) error {
	code, err := qr.Encode(address, qr.L)
	if err != nil {
		return err
	}
	const quiet = 2 // points around the code
	for y := -quiet; y < code.Size+quiet; y += 2 {
		var row strings.Builder
		for x := -quiet; x < code.Size+quiet; x++ {
			// most terminals are light on dark, so the light points are drawn
			switch upper, lower := code.Black(x, y), code.Black(x, y+1); {
			case !upper && !lower:
				row.WriteString("█")
			case !upper:
				row.WriteString("▀")
			case !lower:
				row.WriteString("▄")
			default:
				row.WriteString(" ")
			}
		}
		if err := w.Printf("%s\n", row.String()); err != nil {
			return err
		}
	}
	return w.Printf("%s\n\nThe code in it can be used once, within a minute.\n", address)
}
