//go:build unix && !linux

package testutil

import (
	"os/exec"
	"strconv"
	"strings"
)

// processArgs returns the command line of a process, or nil if there is no such process.
//
// ps does not tell where an argument ends, so a path with blanks is never recognised: a server that was left on such a
// directory is not found, and the next start fails with the message that the data is locked.
func processArgs(pid int) []string {
	text, err := exec.Command("ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return nil
	}
	return strings.Fields(string(text))
}

// processIDs returns the ids of all processes that run a MariaDB server, in no order.
func processIDs() []int {
	text, err := exec.Command("ps", "-axww", "-o", "pid=,command=").Output()
	if err != nil {
		return nil
	}
	var ids []int
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || !strings.HasSuffix(fields[1], "mariadbd") {
			continue
		}
		if id, err := strconv.Atoi(fields[0]); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}
