//go:build unix

package report_test

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/report"
)

func TestWriteFile_NamedPipe(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	got := make(chan []byte, 1)
	go func() {
		data, err := os.ReadFile(path)
		if err != nil {
			data = []byte(err.Error())
		}
		got <- data
	}()
	if err := report.WriteFile(path, small()); err != nil {
		t.Fatal(err)
	}
	if data := <-got; !bytes.Equal(data, encoded(t, small())) {
		t.Errorf("the pipe's reader got %q", data)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("Lstat = %v, %v; want it still a pipe", info, err)
	}
}
