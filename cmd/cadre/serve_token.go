package main

import (
	"strings"

	"github.com/spf13/cobra"

	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/server"
	"cadre/internal/server/auth"
)

// createdToken is a token that was created.
type createdToken struct {
	auth.Token
	Value string `json:"value,omitempty"` // the token itself, with --show
}

// removedToken is a token that was removed.
type removedToken struct {
	Name string `json:"name"` // name of the token
}

func (a *app) tokens() auth.Tokens { return server.TokensOf(a.home, a.note) }

func (a *app) serveTokens() *cobra.Command {
	c := &cobra.Command{
		Use: "token", Short: "List, create and remove tokens for the server's TCP address",
		Long: `List, create and remove the tokens with which clients and browsers use the address of cadre serve
--listen.

A token is in a file that only you can read. It has a role. Each role includes the ones before it:

  observe  read everything
  answer   answer requests for permission and plans, and send messages
  steer    add and change tasks and members
  admin    run commands on this machine, add permission rules, end teams, change git

The token admin exists from the first cadre serve --listen on. A process in a member's session acts as that member,
whatever token it sends.`,
		Example: "  cadre serve token add phone --role answer\n  cadre serve token ls\n  cadre serve token rm phone",
	}
	c.AddCommand(a.serveTokenAdd(), a.serveTokenList(), a.serveTokenRemove())
	return c
}

func (a *app) serveTokenAdd() *cobra.Command {
	var name string
	var show bool
	c := &cobra.Command{
		Use: "add NAME", Short: "Create a token", Args: exactly(1),
		Long: `Create a token, and print the path of its file. A client sends the second word of the file:

  curl -H "Authorization: Bearer $(cut -d' ' -f2 FILE)" http://127.0.0.1:7433/v1/teams

--show prints the token instead, for a client on another machine.`,
		Example: "  cadre serve token add phone --role answer\n  cadre serve token add ci --show >token",
		RunE: func(_ *cobra.Command, args []string) error {
			role, err := auth.ParseRole(name)
			if err != nil {
				return usage{err}
			}
			var made createdToken
			if made.Token, err = a.tokens().Create(args[0], role); err != nil {
				return err
			}
			if !show {
				return a.print(made, said("token %s, with the role %s, is in %s", made.Name, made.Role, made.File))
			}
			if made.Value, err = a.tokens().Value(made.Name); err != nil {
				return err
			}
			return a.print(made, said("%s", made.Value))
		},
	}
	c.Flags().StringVar(&name, "role", auth.Observe.String(), "what it allows: "+strings.Join(auth.Roles(), ", "))
	c.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(auth.Roles(), cobra.ShellCompDirectiveNoFileComp))
	c.Flags().BoolVar(&show, "show", false, "print the token itself, and nothing else")
	return c
}

func (a *app) serveTokenList() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the tokens, without their values", Args: exactly(0),
		Long: "List the tokens, without their values. A token whose file others can read is not used, and not " +
			"listed.",
		Example: "  cadre serve token ls",
		RunE: func(*cobra.Command, []string) error {
			all, err := a.tokens().List()
			if err != nil {
				return err
			}
			return a.print(all, func(w *sanitize.Writer) error {
				if len(all) == 0 {
					return w.Printf("there are no tokens; to create one: cadre serve token add NAME\n")
				}
				t := render.Table{Texts: []string{"FILE"}}
				t.Row("NAME", "ROLE", "FILE")
				for _, one := range all {
					t.Row(one.Name, one.Role, one.File)
				}
				return t.Write(w)
			})
		},
	}
}

func (a *app) serveTokenRemove() *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Short: "Remove a token, and log out its browsers", Args: exactly(1),
		Long: `Remove a token. Requests with it are refused from now on, its browsers are logged out, and its open
streams end within a second.`,
		Example: "  cadre serve token rm phone",
		RunE: func(_ *cobra.Command, args []string) error {
			if err := a.tokens().Remove(args[0]); err != nil {
				return withWays(err, way{"list the tokens", "cadre serve token ls"})
			}
			return a.print(removedToken{args[0]}, said("token %s is removed", args[0]))
		},
	}
}
