package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/options"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the program without its process: it returns the exit status. When ctx ends, it stops donating, says how many donations are pending, and keeps
// them for the next run on the same folder.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := job(ctx, args, stdout, stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(stderr, "guilddonation:", err)
	}
	return options.ExitCode(err)
}
