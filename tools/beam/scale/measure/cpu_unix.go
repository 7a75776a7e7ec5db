//go:build unix

package measure

import (
	"os"
	"runtime"
	"syscall"
	"time"
)

// cpu is how much time of processors this process has taken. Others on the machine
// matter less to it than to the clock.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// mostBytes is the most memory that a process which has ended had at a time.
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
