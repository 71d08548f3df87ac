package testutil

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"
)

// finish runs a detached program of a server's installation to its end. When ctx ends, the program and all that it started are killed. Beside an error,
// which names the program, it returns the last lines that it printed.
func finish(ctx context.Context, cmd *exec.Cmd) (log string, err error) {
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Cancel = func() error { return killGroup(cmd.Process) }
	cmd.WaitDelay = 10 * time.Second
	if err = cmd.Run(); err == nil {
		return "", nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return tail(bytes.NewReader(output.Bytes()), 0), fmt.Errorf("%s: %w", filepath.Base(cmd.Path), err)
}

// awaitAnswer asks again and again until ask succeeds, or fails with what waiting would not mend. It returns errGone when gone is closed before, and the
// cause when ctx ends.
func awaitAnswer(ctx context.Context, gone <-chan struct{}, ask func() error, final func(error) bool) error {
	pause := time.NewTicker(pingPause)
	defer pause.Stop()
	for {
		err := ask()
		if err == nil || final(err) {
			return err
		}
		select {
		case <-gone:
			return errGone
		case <-ctx.Done():
			return fmt.Errorf("%w (last answer: %w)", context.Cause(ctx), err)
		case <-pause.C:
		}
	}
}
