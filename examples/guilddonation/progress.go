package main

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress tells what the program is doing: a bar on a terminal, a line a step elsewhere.
type progress struct {
	out      io.Writer
	terminal bool
}

func newProgress(out io.Writer) *progress {
	f, ok := out.(*os.File)
	return &progress{out: out, terminal: ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"}
}

// step prints a line.
func (p *progress) step(format string, args ...any) {
	fmt.Fprintf(p.out, format+"\n", args...)
}

// bar counts the lines of a step.
type bar struct {
	of   *progress
	name string
	n    int
	done atomic.Int64
	show *progressbar.ProgressBar
}

func (p *progress) bar(name string, n int) *bar {
	b := &bar{of: p, name: name, n: n}
	if p.terminal {
		b.show = progressbar.NewOptions(n, progressbar.OptionSetWriter(p.out), progressbar.OptionSetDescription(name), progressbar.OptionShowCount(),
			progressbar.OptionShowIts(), progressbar.OptionClearOnFinish(), progressbar.OptionSetTheme(progressbar.ThemeASCII))
	}
	return b
}

// count counts a line that went well, and passes the error of one that did not. It is safe for concurrent use.
func (b *bar) count(err error) error {
	if err != nil {
		return err
	}
	b.done.Add(1)
	if b.show != nil {
		_ = b.show.Add(1)
	}
	return nil
}

// end removes the bar and says what was done.
func (b *bar) end() {
	if b.show != nil {
		_ = b.show.Finish()
	}
	b.of.step("%s: %d of %d lines", b.name, b.done.Load(), b.n)
}
