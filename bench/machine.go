package bench

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// Machine describes what a run ran on, in one line: processor, cores, Go, the modules compared, and how busy the machine was when asked.
func Machine() string {
	parts := []string{fmt.Sprintf("%s, %d cores", model(), runtime.NumCPU()), fmt.Sprintf("%s %s/%s, GOMAXPROCS %d", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			switch m.Path {
			case "gorm.io/gorm", "gorm.io/sharding", "github.com/go-saas/saas":
				parts = append(parts, m.Path+" "+m.Version)
			}
		}
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		if f := strings.Fields(string(load)); len(f) >= 3 {
			parts = append(parts, "load average "+strings.Join(f[:3], " "))
		}
	}
	return strings.Join(parts, "; ")
}

// model returns the processor's name where the system tells it.
func model() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}
