package pass

import (
	"io"
	"strconv"
	"time"

	"github.com/schollz/progressbar/v3"
)

// bar shows bytes, rate and the time left on a terminal.
type bar struct {
	shown *progressbar.ProgressBar // nil: nobody looks
	next  time.Time
}

func newBar(terminal io.Writer, bytes int64) *bar {
	if terminal == nil {
		return &bar{}
	}
	if bytes == 0 {
		bytes = -1 // not known: bytes and rate only
	}
	return &bar{shown: progressbar.NewOptions64(bytes,
		progressbar.OptionSetWriter(terminal),
		progressbar.OptionShowBytes(true),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionShowElapsedTimeOnFinish(),
		progressbar.OptionFullWidth(),
		progressbar.OptionClearOnFinish(),
	)}
}

// show updates the bar, ten times a second at most.
func (b *bar) show(bytes int64, references uint64, now time.Time) {
	if b.shown == nil || now.Before(b.next) {
		return
	}
	b.next = now.Add(100 * time.Millisecond)
	b.shown.Describe(millions(references))
	// The bar is an ornament: a terminal that went away ends nothing.
	_ = b.shown.Set64(bytes)
}

func (b *bar) finish() {
	if b.shown != nil {
		_ = b.shown.Finish()
	}
}

func millions(references uint64) string {
	return strconv.FormatFloat(float64(references)/1e6, 'f', 1, 64) + "M references"
}
