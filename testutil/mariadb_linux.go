package testutil

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// processArgs returns the command line of a process, or nil if there is no such process. One that has ended and was not reaped
// yet has an empty command line, and so counts as none.
func processArgs(pid int) []string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil || len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// processIDs returns the ids of all processes that can be seen, in no order.
func processIDs() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var ids []int
	for _, e := range entries {
		if id, err := strconv.Atoi(e.Name()); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}
