package main

import "github.com/spf13/cobra"

func (a *app) fsckCommand() *cobra.Command { return &cobra.Command{Use: "fsck"} }
