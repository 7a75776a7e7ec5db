//go:build unix

package measure

import (
	"os"
	"runtime"
	"syscall"
	"time"
)

// cpu returns the processor time of this process, which depends less on other processes than the
// wall-clock time does.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// mostBytes returns the peak memory of a process that has ended.
func mostBytes(s *os.ProcessState) float64 {
	u, ok := s.SysUsage().(*syscall.Rusage)
	switch {
	case !ok:
		return 0
	case runtime.GOOS == "darwin":
		return float64(u.Maxrss)
	}
	return float64(u.Maxrss) * 1024
}
