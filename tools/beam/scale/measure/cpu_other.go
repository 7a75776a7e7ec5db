//go:build !unix

package measure

import (
	"os"
	"time"
)

var start = time.Now()

// cpu returns the wall-clock time, because the processor time is unknown.
func cpu() time.Duration { return time.Since(start) }

// mostBytes returns 0, because the peak memory is unknown.
func mostBytes(*os.ProcessState) float64 { return 0 }
