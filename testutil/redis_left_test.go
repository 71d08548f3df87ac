//go:build linux

package testutil_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/testutil"
)

// A test process that is killed cannot clean up; the reaper does.
func TestStartRedis_OutlivesNoKill(t *testing.T) {
	t.Parallel()
	testutil.RequireRedis(t)
	if os.Getenv(hangEnv) != "" {
		r := testutil.StartRedis(t)
		fmt.Printf("\nserver %d %s\n", r.Pid(), r.Socket())
		select {}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=60s")
	temp := t.TempDir() // the killed process cannot remove what t.TempDir begins there
	cmd.Env = append(os.Environ(), hangEnv+"=1", "TMPDIR="+temp)
	output, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	pid, socket := "", ""
	for lines := bufio.NewScanner(output); socket == "" && lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "server "); ok {
			pid, socket, _ = strings.Cut(rest, " ")
		}
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	id, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatalf("the hanging test named %q and %q, want a process and a socket", pid, socket)
	}
	waitFor(t, "the server ends", func() bool { return !alive(id) })
	waitFor(t, "its socket is gone", func() bool {
		_, err := os.Stat(filepath.Dir(socket))
		return os.IsNotExist(err)
	})
}
