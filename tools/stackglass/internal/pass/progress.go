package pass

import (
	"io"
	"strconv"
	"time"

	"github.com/schollz/progressbar/v3"
)

// bar shows how much is done, the rate and the time left on a terminal.
type bar struct {
	shown      *progressbar.ProgressBar // nil: standard error is no terminal
	references bool                     // it counts references, else bytes
	next       time.Time
}

// newBar makes a bar of a number of references, or, where that is 0, of bytes.
func newBar(terminal io.Writer, references uint64, bytes int64) *bar {
	if terminal == nil {
		return &bar{}
	}
	whole := bytes
	switch {
	case references > 0:
		whole = int64(references)
	case bytes == 0:
		whole = -1 // not known: bytes and rate only
	}
	return &bar{references: references > 0, shown: progressbar.NewOptions64(whole,
		progressbar.OptionSetWriter(terminal),
		progressbar.OptionShowBytes(references == 0),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionShowElapsedTimeOnFinish(),
		progressbar.OptionFullWidth(),
		progressbar.OptionClearOnFinish(),
	)}
}

// show updates the bar, ten times a second at most. leftOut are references that were read
// and not analysed.
func (b *bar) show(bytes int64, references, leftOut uint64, now time.Time) {
	if b.shown == nil || now.Before(b.next) {
		return
	}
	b.next = now.Add(100 * time.Millisecond)
	b.shown.Describe(millions(references))
	if b.references {
		bytes = int64(references + leftOut)
	}
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
