package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitFound = 1 // the command did its work and found something wrong
	exitUsage = 2 // wrong arguments, a file that cannot be read or understood
)

// errFound is returned by a command that has printed what it found.
var errFound = errors.New("found")

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the command with its arguments, without the program's name, and returns its exit code.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	switch err := root.ExecuteContext(context.Background()); {
	case err == nil:
		return 0
	case errors.Is(err, errFound):
		return exitFound
	default:
		fmt.Fprintln(errs, "tdal:", err)
		return exitUsage
	}
}

func newRoot() *cobra.Command {
	root := group("tdal", "Operate services built on tenantdal",
		group("sql", "Look at SQL statements", newSQLCheck()),
		group("ring", "Try how keys are placed on shards", newRingOwner(), newRingPlan(), newRingStats()),
		group("route", "Look at where keys live", newRouteExplain()))
	root.SilenceUsage, root.SilenceErrors = true, true
	root.CompletionOptions.DisableDefaultCmd = true
	return root
}

// group is a noun with its verbs. Without a verb it prints its help; another word is an error.
func group(noun, short string, verbs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:   noun,
		Short: short,
		Args:  cobra.ArbitraryArgs, // those that name no verb end in RunE
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q for %q", args[0], c.CommandPath())
			}
			return c.Help()
		},
	}
	c.AddCommand(verbs...)
	return c
}
