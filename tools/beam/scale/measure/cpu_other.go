//go:build !unix

package measure

import (
	"os"
	"time"
)

var start = time.Now()

// cpu is the clock's time, where that of processors is not known.
func cpu() time.Duration { return time.Since(start) }

// mostBytes is not known.
func mostBytes(*os.ProcessState) float64 { return 0 }
